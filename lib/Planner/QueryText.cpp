//===- QueryText.cpp - Answers about other plans, as text ----------------------------===//
#include "ds/Planner/QueryText.h"

#include "ds/Report/Throughput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;

PlanChoice *ds::planner::findBest(std::vector<PlanChoice> &table, bool withPass) {
  PlanChoice *best = nullptr;
  for (PlanChoice &choice : table)
    if (choice.fits && (choice.hasPass || !withPass) && choice.stepSeconds &&
        (!best || *choice.stepSeconds < *best->stepSeconds * (1 - 1e-9)))
      best = &choice;
  return best;
}

void ds::planner::markBest(std::vector<PlanChoice> &table) {
  PlanChoice *best = findBest(table, /*withPass=*/true);
  if (!best) // of degrees of which there is no program, the table may be of nothing else
    best = findBest(table);
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

/// Which rows stand for programs, where not all do.
static const char *markOf(const PlanChoice &choice, bool areAllPrograms) {
  return areAllPrograms ? "  " : choice.basis == "program" ? "= " : choice.hasPass ? "  " : "- ";
}

/// One row with its mark; sizes are divided by `unit`.
static void printRow(llvm::raw_ostream &out, const PlanChoice &choice, const std::string &mark,
                     const std::string &remark, double unit) {
  out << (choice.best ? "*" : " ") << mark << llvm::right_justify(std::to_string(choice.zeroStage), 4) << "  "
      << llvm::left_justify(choice.recompute, 11) << llvm::left_justify(choice.optimizerHome, 11)
      << llvm::right_justify(std::to_string(choice.microBatch) + " x " + std::to_string(choice.accumulation),
                             11);
  for (int64_t bytes : {choice.deviceBytes, choice.hostBytes, choice.nvmeBytes})
    out << llvm::format("%10.1f", static_cast<double>(bytes) / unit);
  out << llvm::format("%11.4g", choice.stepSeconds.value_or(0)) << (choice.fits ? "  yes" : "  no") << remark
      << "\n";
}

std::string ds::planner::printWhatIf(const report::PlanReport &report) {
  constexpr double kMebi = 1024.0 * 1024, kGibi = 1024 * kMebi;
  double largest = 0;
  bool any = false;
  for (const PlanChoice &choice : report.whatIf) {
    largest = std::max(largest, static_cast<double>(choice.deviceBytes));
    any |= choice.best;
  }
  bool large = largest >= 10 * kGibi;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << (large
              ? "   ZeRO  recompute  optimizer  micro-batch  peak GiB  host GiB  nvme GiB     step s  fits\n"
              : "   ZeRO  recompute  optimizer  micro-batch  peak MiB  host MiB  nvme MiB     step s  "
                "fits\n");
  auto isEstimate = [](const PlanChoice &choice) { return choice.basis != "program"; };
  bool areAllPrograms = llvm::none_of(report.whatIf, isEstimate);
  for (const PlanChoice &choice : report.whatIf)
    printRow(out, choice, markOf(choice, areAllPrograms), report.remarkOn(choice), large ? kGibi : kMebi);
  out << (any ? "*  the fastest that fits\n" : "none of them fits\n");
  for (const PlanChoice &choice : report.whatIf)
    if (std::string run = report::spellRun(report, choice.stepSeconds.value_or(0));
        choice.best && !run.empty())
      out << "*  " << run << "\n";
  if (!areAllPrograms && !llvm::all_of(report.whatIf, isEstimate))
    out << "=  planned as a program; all others are estimates by rules\n";
  if (llvm::any_of(report.whatIf, [](const PlanChoice &choice) { return !choice.hasPass; }))
    out << "-  by rules alone: questions plan no programs of pipelines yet\n";
  return text;
}
