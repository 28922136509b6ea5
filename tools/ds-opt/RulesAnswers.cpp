//===- RulesAnswers.cpp - What other plans by rules would take and cost -----------===//
#include "RulesAnswers.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

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

/// What a device needs, in GiB.
static std::string deviceGibi(const RulesCase &what, const PlanChoice &choice) {
  return gibi(static_cast<double>(choice.deviceBytes + what.rates.cluster().device.contextBytes));
}

std::string ds::opt::printChanges(const RulesCase &what, const analysis::PlanReport &report) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const PlanChoice &choice : report.changes)
    out << "would fit: " << choice.change
        << llvm::format(": %.4g s a step (%+.1f %%), ", *choice.stepSeconds,
                        100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1))
        << deviceGibi(what, choice) << " GiB\n";
  return text;
}

std::string ds::opt::printWhatIf(const RulesCase &what, const analysis::PlanReport &report) {
  bool any = false;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "   ZeRO  recompute  optimizer  micro-batch  peak GiB  host GiB  nvme GiB   step s  fits\n";
  for (const PlanChoice &choice : report.whatIf) {
    any |= choice.best;
    out << (choice.best ? "*  " : "   ") << llvm::right_justify(std::to_string(choice.zeroStage), 4) << "  "
        << llvm::left_justify(choice.recompute, 11) << llvm::left_justify(choice.optimizerHome, 11)
        << llvm::right_justify(
               std::to_string(choice.microBatch) + " x " + std::to_string(choice.accumulation), 11)
        << llvm::right_justify(deviceGibi(what, choice), 10)
        << llvm::right_justify(gibi(static_cast<double>(choice.hostBytes)), 10)
        << llvm::right_justify(gibi(static_cast<double>(choice.nvmeBytes)), 10)
        << llvm::format("%9.4g", *choice.stepSeconds) << (choice.fits ? "  yes\n" : "  no\n");
  }
  out << (any ? "*  the fastest that fits\n" : "none of them fits\n");
  return text;
}
