//===- RulesAnswers.cpp - What other plans by rules would take and cost -----------===//
#include "RulesAnswers.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace ds;
using namespace ds::opt;
using analysis::PlanChoice;

/// As many changes are named.
static constexpr size_t kMostChanges = 5;

/// A candidate's figures; the device's context is outside of them, as it is outside of a plan's peak.
static PlanChoice choiceOf(const cost::Candidate &candidate) {
  const cost::ParallelPlan &plan = candidate.plan;
  const cost::MemoryEstimate &memory = candidate.memory;
  PlanChoice choice;
  choice.zeroStage = plan.zeroStage;
  choice.microBatch = plan.microBatch;
  choice.accumulation = plan.accumulation;
  choice.recompute = spell(plan.recompute);
  choice.optimizerHome = spell(plan.optimizerHome);
  choice.deviceBytes = whole(memory.deviceBytes() - memory.context);
  choice.hostBytes = whole(memory.host.bytes());
  choice.nvmeBytes = whole(memory.storage.bytes());
  choice.stepSeconds = candidate.seconds;
  choice.fits = candidate.fits;
  return choice;
}

std::vector<PlanChoice> ds::opt::choicesOf(const std::vector<cost::Change> &changes) {
  std::vector<PlanChoice> choices;
  for (const cost::Change &change : llvm::ArrayRef(changes).take_front(kMostChanges)) {
    choices.push_back(choiceOf(change.candidate));
    choices.back().change = change.what;
  }
  return choices;
}

std::vector<PlanChoice> ds::opt::choicesOf(const std::vector<cost::Candidate> &table) {
  std::vector<PlanChoice> choices;
  std::optional<size_t> best;
  for (const cost::Candidate &candidate : table) {
    choices.push_back(choiceOf(candidate));
    if (candidate.fits && (!best || candidate.seconds < table[*best].seconds * (1 - 1e-9)))
      best = choices.size() - 1;
  }
  if (best)
    choices[*best].best = true;
  return choices;
}

/// What a device needs, its context included.
static double deviceBytes(int64_t contextBytes, const PlanChoice &choice) {
  return static_cast<double>(choice.deviceBytes + contextBytes);
}

std::string ds::opt::printChanges(const RulesCase &what, const analysis::PlanReport &report) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const PlanChoice &choice : report.changes)
    out << "would fit: " << choice.change
        << llvm::format(": %.4g s a step (%+.1f %%), ", *choice.stepSeconds,
                        100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1))
        << gibi(deviceBytes(what.rates.cluster().device.contextBytes, choice)) << " GiB\n";
  return text;
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

std::string ds::opt::printWhatIf(int64_t contextBytes, const analysis::PlanReport &report) {
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
