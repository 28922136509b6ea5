//===- AnalyticQueries.cpp - What other plans by rules would take and cost -----------===//
#include "ds/Planner/AnalyticQueries.h"

#include "SequenceLength.h"
#include "ds/Planner/QueryText.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;

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
  choice.deviceBytes = sum(peakParts(memory));
  choice.hostBytes = whole(memory.host.bytes());
  choice.nvmeBytes = whole(memory.storage.bytes());
  choice.stepSeconds = candidate.seconds;
  choice.fits = candidate.fits;
  choice.basis = "rules";
  // What a program recomputes of attention alone is the op of that name, and where scores are stored none
  // stands for it.
  choice.hasPass =
      cost::hasPass(plan) && (plan.recompute != cost::Recompute::Selective || plan.flashAttention);
  return choice;
}

std::vector<PlanChoice> ds::planner::choicesOf(const std::vector<cost::Change> &changes) {
  std::vector<PlanChoice> choices;
  for (const cost::Change &change : llvm::ArrayRef(changes).take_front(kMostChanges)) {
    choices.push_back(choiceOf(change.candidate));
    choices.back().change = change.what;
  }
  return choices;
}

std::vector<PlanChoice> ds::planner::choicesOf(const std::vector<cost::Candidate> &table) {
  std::vector<PlanChoice> choices;
  for (const cost::Candidate &candidate : table)
    choices.push_back(choiceOf(candidate));
  return choices;
}

std::optional<PlanChoice> ds::planner::shorterSamples(const AnalyticCase &what) {
  cost::ModelShape shape = what.shape;
  int64_t longest = std::min(longestSequence(shape, what.plan, what.rates.cluster()), what.positions);
  // Halves of the present length, which people ask for.
  while (shape.seq > longest)
    shape.seq /= 2;
  if (shape.seq < 1 || shape.seq == what.shape.seq)
    return std::nullopt;
  PlanChoice choice = choiceOf(estimate(shape, what.plan, what.rates));
  choice.change = spellLength(what.plan.microBatch, shape.seq);
  return choice;
}

config::Cluster ds::planner::calibrate(const AnalyticCase &rules, const report::PlanReport &report) {
  config::Cluster cluster = rules.rates.cluster();
  double byRules = estimateMemory(rules.shape, rules.plan, cluster).peakBytes();
  auto planned = static_cast<double>(report.ranks.front().deviceArena);
  double share = planned > 0 && byRules > 0 ? byRules / planned : 1;
  cluster.device.memoryBytes =
      whole(share * static_cast<double>(report.memoryLimit)) + cluster.device.contextBytes;
  return cluster;
}

std::string ds::planner::printChanges(const report::PlanReport &report) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const PlanChoice &choice : report.changes)
    out << "would fit: " << choice.change
        << llvm::format(": %.4g s a step (%+.1f %%), ", *choice.stepSeconds,
                        100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1))
        << gibi(static_cast<double>(choice.deviceBytes)) << " GiB" << report.remarkOn(choice) << "\n";
  return text;
}
