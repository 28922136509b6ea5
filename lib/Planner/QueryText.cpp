//===- QueryText.cpp - Answers about other plans, as text ----------------------------===//
#include "ds/Planner/QueryText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;

void ds::planner::markBest(std::vector<PlanChoice> &table) {
  PlanChoice *best = nullptr;
  for (PlanChoice &choice : table)
    if (choice.fits && choice.stepSeconds && (!best || *choice.stepSeconds < *best->stepSeconds * (1 - 1e-9)))
      best = &choice;
  if (best)
    best->best = true;
}

std::string ds::planner::printLargest(const report::PlanReport &report, const std::string &bound) {
  std::string text;
  if (report.maxBatch)
    text += "largest micro-batch that fits: " + std::to_string(*report.maxBatch) + "\n";
  if (report.maxSeq)
    text += "longest sequence that fits: " + std::to_string(*report.maxSeq) + bound + "\n";
  return text;
}

bool ds::planner::someFit(const report::PlanReport &report) {
  return report.maxBatch.value_or(1) > 0 && report.maxSeq.value_or(1) > 0;
}

/// What a device needs, its context included.
static double deviceBytes(int64_t contextBytes, const PlanChoice &choice) {
  return static_cast<double>(choice.deviceBytes + contextBytes);
}

/// One row; sizes are divided by `unit`.
static void printRow(llvm::raw_ostream &out, const PlanChoice &choice, int64_t contextBytes, double unit) {
  out << (choice.best ? "*  " : "   ") << llvm::right_justify(std::to_string(choice.zeroStage), 4) << "  "
      << llvm::left_justify(choice.recompute, 11) << llvm::left_justify(choice.optimizerHome, 11)
      << llvm::right_justify(std::to_string(choice.microBatch) + " x " + std::to_string(choice.accumulation),
                             11);
  for (double bytes : {deviceBytes(contextBytes, choice), static_cast<double>(choice.hostBytes),
                       static_cast<double>(choice.nvmeBytes)})
    out << llvm::format("%10.1f", bytes / unit);
  out << llvm::format("%9.4g", choice.stepSeconds.value_or(0)) << (choice.fits ? "  yes\n" : "  no\n");
}

std::string ds::planner::printWhatIf(int64_t contextBytes, const report::PlanReport &report) {
  constexpr double kMebi = 1024.0 * 1024, kGibi = 1024 * kMebi;
  double largest = 0;
  bool any = false;
  for (const PlanChoice &choice : report.whatIf) {
    largest = std::max(largest, deviceBytes(contextBytes, choice));
    any |= choice.best;
  }
  bool large = largest >= 10 * kGibi;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << (large
              ? "   ZeRO  recompute  optimizer  micro-batch  peak GiB  host GiB  nvme GiB   step s  fits\n"
              : "   ZeRO  recompute  optimizer  micro-batch  peak MiB  host MiB  nvme MiB   step s  fits\n");
  for (const PlanChoice &choice : report.whatIf)
    printRow(out, choice, contextBytes, large ? kGibi : kMebi);
  out << (any ? "*  the fastest that fits\n" : "none of them fits\n");
  return text;
}
