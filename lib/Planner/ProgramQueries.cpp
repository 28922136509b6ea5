//===- ProgramQueries.cpp - What other plans of a program would take and cost -----===//
#include "ds/Planner/ProgramQueries.h"

#include "LargestSize.h"
#include "SequenceLength.h"
#include "ds/Import/HfShape.h"
#include "ds/Planner/AnalyticQueries.h"
#include "ds/Planner/QueryText.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;
using report::PlanReport;

/// Rows of a ZeRO stage: each is a compilation, and few steps have more than 128 samples of a rank.
static constexpr size_t kMostMicroBatches = 8;
/// What a row's recomputation is where the program chooses it.
static const std::string kOpen = "none";
/// Plans that are made for a question beside the present one, where rules say which are worth it.
static constexpr unsigned kMostConfirmed = 4;

//===----------------------------------------------------------------------===//
// --what-if
//===----------------------------------------------------------------------===//

/// Powers of two that divide the samples of a rank's step; the present one alone where inputs cannot change.
static std::vector<int64_t> microBatches(const PlanSettings &settings, const config::Config &config) {
  if (settings.inputKind() == InputKind::Mlir)
    return {config.batch.micro};
  int64_t samples = config.batch.micro * config.batch.accumulation;
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= samples && sizes.size() < kMostMicroBatches; size *= 2)
    if (samples % size == 0)
      sizes.push_back(size);
  return sizes;
}

/// Plans a proposal, unless it is the present setting, whose plan the report already is.
static Status planUnlessPresent(Proposal &proposal, bool isPresent, const PlanFunction &planner,
                                const PlanReport &report) {
  if (!isPresent)
    return proposal.plan(planner);
  proposal.take(report);
  return {};
}

/// The home that a row spells.
static config::Home homeNamed(const std::string &name) {
  for (config::Home home : {config::Home::Cpu, config::Home::Nvme})
    if (name == spell(home))
      return home;
  return config::Home::Device;
}

/// The row of `choice` planned, the present setting's being the report's.
static Status confirm(PlanChoice &choice, const PlanSettings &settings, const config::Config &config,
                      const PlanFunction &planner, const PlanReport &report) {
  Proposal proposal(settings, config);
  if (choice.zeroStage != config.zero.stage)
    proposal.setStage(choice.zeroStage);
  if (choice.optimizerHome != proposal.choice.optimizerHome)
    proposal.setOptimizerHome(homeNamed(choice.optimizerHome));
  if (choice.microBatch != config.batch.micro)
    proposal.setMicroBatch(choice.microBatch);
  bool isPresent = proposal.choice.change.empty() && proposal.choice.recompute == choice.recompute;
  proposal.setRecompute(choice.recompute);
  Status planned = planUnlessPresent(proposal, isPresent, planner, report);
  proposal.choice.change.clear();
  if (planned)
    choice = proposal.choice;
  return planned;
}

/// The row that leaves recomputation to the program and is as `choice` otherwise. Programs make again what
/// memory asks for, so that this one fits wherever `choice` does, and takes no longer.
static PlanChoice &openRowOf(std::vector<PlanChoice> &table, PlanChoice &choice) {
  auto row = llvm::find_if(table, [&](const PlanChoice &other) {
    return other.recompute == kOpen && other.zeroStage == choice.zeroStage &&
           other.microBatch == choice.microBatch && other.optimizerHome == choice.optimizerHome;
  });
  return row != table.end() && row->basis != "program" ? *row : choice;
}

/// The table by rules. The present row is planned, and so are those that rules hold for the fastest which fit
/// and have a program, until one is that still is the fastest.
static Status addRankedTable(const PlanSettings &settings, const config::Config &config,
                             const PlanFunction &planner, const AnalyticCase &rules, PlanReport &report) {
  std::vector<PlanChoice> table = choicesOf(cost::whatIf(rules.shape, rules.plan, rules.rates));
  const PlanChoice present = Proposal(settings, config).choice;
  for (PlanChoice &choice : table) {
    bool isPresent = choice.hasPass && choice.recompute == present.recompute &&
                     choice.optimizerHome == present.optimizerHome && choice.zeroStage == config.zero.stage &&
                     choice.microBatch == config.batch.micro;
    if (isPresent)
      if (Status planned = confirm(choice, settings, config, planner, report); !planned)
        return planned;
  }
  for (unsigned made = 0; made < kMostConfirmed; ++made) {
    PlanChoice *best = findBest(table, /*withPass=*/true);
    if (!best || best->basis == "program")
      break;
    best = &openRowOf(table, *best);
    if (Status planned = confirm(*best, settings, config, planner, report); !planned) {
      report.notes.push_back("ZeRO stage " + std::to_string(best->zeroStage) + ", micro-batch " +
                             std::to_string(best->microBatch) + ": " + planned.error().message);
      best->fits = false;
    }
  }
  markBest(table);
  report.whatIf = std::move(table);
  return {};
}

static Status addTable(const PlanSettings &settings, const config::Config &config,
                       const PlanFunction &planner, PlanReport &report) {
  std::optional<Error> first;
  bool shards = config.mesh.dp > 1;
  for (int64_t stage = shards ? 0 : config.zero.stage; stage <= (shards ? 3 : config.zero.stage); ++stage)
    for (int64_t micro : microBatches(settings, config)) {
      Proposal proposal(settings, config);
      if (stage != config.zero.stage)
        proposal.setStage(stage);
      if (micro != config.batch.micro)
        proposal.setMicroBatch(micro);
      bool isPresent = proposal.choice.change.empty();
      if (Status planned = planUnlessPresent(proposal, isPresent, planner, report); !planned) {
        if (!first)
          first = planned.error();
        report.notes.push_back("left out of the table: " + proposal.choice.change + ": " +
                               planned.error().message);
        continue;
      }
      proposal.choice.change.clear();
      report.whatIf.push_back(proposal.choice);
    }
  if (report.whatIf.empty())
    return *first;
  markBest(report.whatIf);
  return {};
}

//===----------------------------------------------------------------------===//
// --max-batch and --max-seq
//===----------------------------------------------------------------------===//

/// A size that rules hold for the largest, if they were asked.
using Guess = std::optional<int64_t>;

static Result<int64_t> findLargest(const LargestSize::Plan &plan, int64_t present, Guess guess,
                                   const std::string &what, PlanReport &report) {
  LargestSize search(plan, report.memoryLimit);
  Result<int64_t> size = guess ? search.findNear(present, *guess, kMostConfirmed) : search.find(present);
  if (!size)
    return size;
  if (!search.refusal().empty())
    report.notes.push_back(what + " is bounded by the model, not by memory: " + search.refusal());
  if (std::optional<int64_t> tooLarge = search.gap())
    report.notes.push_back(what + " may be larger: " + std::to_string(*tooLarge) +
                           " is the least that was planned and does not fit");
  return size;
}

static Status addMaxBatch(const PlanSettings &settings, const config::Config &config,
                          const PlanFunction &planner, const AnalyticCase *rules, PlanReport &report) {
  auto plan = [&](int64_t size, PlanChoice &choice) {
    Proposal proposal(settings, config);
    bool isPresent = size == config.batch.micro;
    if (!isPresent)
      proposal.growMicroBatch(size);
    Status planned = planUnlessPresent(proposal, isPresent, planner, report);
    choice = proposal.choice;
    return planned;
  };
  Guess guess;
  if (rules)
    guess = largestMicroBatch(rules->shape, rules->plan, calibrate(*rules, report));
  Result<int64_t> size = findLargest(plan, config.batch.micro, guess, "the largest micro-batch", report);
  if (!size)
    return size.error();
  report.maxBatch = *size;
  return {};
}

static Status addMaxSeq(PlanSettings settings, const config::Config &config, const PlanFunction &planner,
                        const AnalyticCase *rules, PlanReport &report) {
  Result<int64_t> length = findSequence(settings, config, "--max-seq");
  if (!length)
    return length.error();
  int64_t unit = std::gcd(*length, int64_t{64});
  auto plan = [&](int64_t units, PlanChoice &choice) {
    Proposal proposal(settings, config);
    proposal.resizeInputs(1, *length, units * unit);
    Status planned = planUnlessPresent(proposal, units * unit == *length, planner, report);
    choice = proposal.choice;
    return planned;
  };
  Guess guess;
  if (rules)
    guess =
        std::min(longestSequence(rules->shape, rules->plan, calibrate(*rules, report)), rules->positions) /
        unit;
  Result<int64_t> units = findLargest(plan, *length / unit, guess, "the longest sequence", report);
  if (!units)
    return units.error();
  report.maxSeq = *units * unit;
  return {};
}

Status ds::planner::addQueries(const PlanSettings &settings, const config::Config &config,
                               const PlanFunction &planner, const AnalyticCase *rules, PlanReport &report) {
  if (settings.whatIf)
    if (Status status = rules ? addRankedTable(settings, config, planner, *rules, report)
                              : addTable(settings, config, planner, report);
        !status)
      return status;
  if (settings.maxBatch)
    if (Status status = addMaxBatch(settings, config, planner, rules, report); !status)
      return status;
  return settings.maxSeq ? addMaxSeq(settings, config, planner, rules, report) : Status();
}

std::string ds::planner::printQueries(const PlanSettings &settings, const PlanReport &report,
                                      int64_t contextBytes, bool isRanked) {
  std::string text = report.model + " on " + report.target + ": " + std::to_string(report.world) +
                     (report.world == 1 ? " rank" : " ranks") +
                     (isRanked ? ", plans ranked by rules, answers planned\n" : ", every plan made\n");
  if (settings.whatIf)
    text += printWhatIf(contextBytes, report);
  text += printLargest(report);
  for (const std::string &note : report.notes)
    text += "note: " + note + "\n";
  return text;
}
