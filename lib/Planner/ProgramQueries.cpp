//===- ProgramQueries.cpp - What other plans of a program would take and cost -----===//
#include "ds/Planner/ProgramQueries.h"

#include "LargestSize.h"
#include "SequenceLength.h"
#include "ds/Import/HfShape.h"
#include "ds/Planner/AnalyticQueries.h"
#include "ds/Planner/QueryText.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
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
/// Plans for the largest size: two or three that hold as little as can be say where it lies, and one or two
/// others confirm it.
static constexpr unsigned kMostSizes = 7;

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

/// The row that leaves recomputation to the program and is as `choice` otherwise. Programs recompute what
/// memory asks for, so that this one fits wherever `choice` does, and takes no longer.
static PlanChoice &openRowOf(std::vector<PlanChoice> &table, PlanChoice &choice) {
  auto row = llvm::find_if(table, [&](const PlanChoice &other) {
    return other.recompute == kOpen && other.zeroStage == choice.zeroStage &&
           other.microBatch == choice.microBatch && other.optimizerHome == choice.optimizerHome;
  });
  return row != table.end() && row->basis != "program" ? *row : choice;
}

/// What a row stands for, as its columns say it.
static std::string spellRow(const PlanChoice &choice) {
  return "ZeRO stage " + std::to_string(choice.zeroStage) + ", recompute " + choice.recompute +
         ", optimizer on " + choice.optimizerHome + ", micro-batch " + std::to_string(choice.microBatch);
}

/// The table by rules, of what has a program. The present row is planned, and so are those that rules hold
/// for the fastest which fit until one is that still is the fastest.
static Status addRankedTable(const PlanSettings &settings, const config::Config &config,
                             const PlanFunction &planner, const AnalyticCase &rules, PlanReport &report) {
  std::vector<PlanChoice> table = choicesOf(cost::whatIf(rules.shape, rules.plan, rules.rates));
  llvm::erase_if(table, [](const PlanChoice &choice) { return !choice.hasPass; }); // no answer could be one
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
      report.notes.push_back(spellRow(*best) + ": " + planned.error().message);
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

/// What sizes are looked for by.
struct Sizes {
  int64_t present = 1; ///< the report's
  LargestSize::Plan plan;
  /// With rules: the size that they hold for the largest, and plans that hold as little as can be.
  std::optional<int64_t> guess = {};
  LargestSize::Plan least = {};
};

/// Bytes of states, which every size takes.
static int64_t stateBytes(const PlanReport &report) {
  const report::StateBytes &states = report.ranks.front().states;
  return states.parameters + states.gradients + states.optimizer + states.padding;
}

static Result<int64_t> findLargest(const Sizes &sizes, const std::string &what, PlanReport &report) {
  LargestSize search(sizes.plan, report.memoryLimit);
  Result<int64_t> size =
      sizes.guess ? search.findByLeast({sizes.present, report.fits(), *sizes.guess, stateBytes(report)},
                                       sizes.least, kMostSizes)
                  : search.find(sizes.present);
  if (!size)
    return size;
  if (!search.refusal().empty())
    report.notes.push_back(what + " is bounded by the model, not by memory: " + search.refusal());
  if (std::optional<int64_t> tooLarge = search.gap())
    report.notes.push_back(what + " may be larger: " + std::to_string(*tooLarge) +
                           " is the least that was planned and does not fit");
  return size;
}

/// The plan of `ranking` that makes most again, so that its bound is that of the plans that hold least.
static cost::ParallelPlan withFewestBytes(const Ranking &ranking) {
  cost::ParallelPlan plan = ranking.rules.plan;
  plan.recompute = cost::Recompute::Full;
  return plan;
}

/// `byRules`, the largest size as rules have it, corrected by what is expected of it, and once more where
/// that is far off: in which form least is taken, so much larger a size may have otherwise. What the model
/// bounds, or does not take, stays as it is.
template <class Propose>
static int64_t correct(int64_t byRules, int64_t present, Propose propose, const Ranking &ranking,
                       const PlanReport &report) {
  constexpr double kFar = 2;
  if (byRules < 1 || (byRules <= present && report.fits()))
    return byRules;
  const auto fixed = static_cast<double>(stateBytes(report));
  const auto limit = static_cast<double>(report.memoryLimit);
  int64_t size = byRules;
  for (int round = 0; round < 2; ++round) {
    Result<int64_t> expected = ranking.expectLeast(propose(size).settings);
    if (!expected || static_cast<double>(*expected) <= fixed)
      return size;
    const double times = (limit - fixed) / (static_cast<double>(*expected) - fixed);
    size = static_cast<int64_t>(std::clamp(static_cast<double>(size) * times, 1.0, 1e7));
    if (times > 1 / kFar && times < kFar)
      return size;
  }
  return size;
}

/// What a search asks of `propose`d sizes. The plan of the present one is the report's.
template <class Propose>
static LargestSize::Plan planBy(const PlanFunction &planner, int64_t present, Propose propose,
                                const PlanReport &report) {
  return [=, &report](int64_t size, PlanChoice &choice) {
    Proposal proposal = propose(size);
    Status status = planUnlessPresent(proposal, size == present, planner, report);
    choice = proposal.choice;
    return status;
  };
}

/// Searches of `propose`d sizes from the present one on, `byRules` the largest as rules have it, where asked.
template <class Propose>
static Sizes sizesOf(int64_t present, std::optional<int64_t> byRules, Propose propose,
                     const PlanFunction &planner, const Ranking *ranking, const PlanReport &report) {
  if (!ranking)
    return {present, planBy(planner, present, propose, report)};
  return {present, planBy(planner, present, propose, report),
          correct(*byRules, present, propose, *ranking, report),
          planBy(ranking->planLeast, present, propose, report)};
}

static Status addMaxBatch(const PlanSettings &settings, const config::Config &config,
                          const PlanFunction &planner, const Ranking *ranking, PlanReport &report) {
  const int64_t present = config.batch.micro;
  auto propose = [&](int64_t size) {
    Proposal proposal(settings, config);
    if (size != present)
      proposal.growMicroBatch(size);
    return proposal;
  };
  std::optional<int64_t> byRules;
  if (ranking)
    byRules =
        largestMicroBatch(ranking->rules.shape, withFewestBytes(*ranking), calibrate(ranking->rules, report));
  Result<int64_t> size = findLargest(sizesOf(present, byRules, propose, planner, ranking, report),
                                     "the largest micro-batch", report);
  if (!size)
    return size.error();
  report.maxBatch = *size;
  return {};
}

static Status addMaxSeq(PlanSettings settings, const config::Config &config, const PlanFunction &planner,
                        const Ranking *ranking, PlanReport &report) {
  Result<int64_t> length = findSequence(settings, config, "--max-seq");
  if (!length)
    return length.error();
  int64_t unit = std::lcm(std::gcd(*length, int64_t{64}), config.mesh.sp); // ranks have equal parts
  auto propose = [&](int64_t units) {
    Proposal proposal(settings, config);
    proposal.resizeInputs(1, *length, units * unit);
    return proposal;
  };
  std::optional<int64_t> byRules;
  if (ranking) {
    const AnalyticCase &rules = ranking->rules;
    int64_t longest = longestSequence(rules.shape, withFewestBytes(*ranking), calibrate(rules, report));
    byRules = std::min(longest, rules.positions) / unit;
  }
  Result<int64_t> units = findLargest(sizesOf(*length / unit, byRules, propose, planner, ranking, report),
                                      "the longest sequence", report);
  if (!units)
    return units.error();
  report.maxSeq = *units * unit;
  return {};
}

Status ds::planner::addQueries(const PlanSettings &settings, const config::Config &config,
                               const PlanFunction &planner, const Ranking *ranking, PlanReport &report) {
  if (settings.whatIf)
    if (Status status = ranking ? addRankedTable(settings, config, planner, ranking->rules, report)
                                : addTable(settings, config, planner, report);
        !status)
      return status;
  if (settings.maxBatch)
    if (Status status = addMaxBatch(settings, config, planner, ranking, report); !status)
      return status;
  return settings.maxSeq ? addMaxSeq(settings, config, planner, ranking, report) : Status();
}

std::string ds::planner::printQueries(const PlanSettings &settings, const PlanReport &report, bool isRanked) {
  std::string text = report.model + " on " + report.target +
                     (report.clusterReason.empty() ? "" : " (" + report.cluster + ")") + ": " +
                     std::to_string(report.world) + (report.world == 1 ? " rank" : " ranks") +
                     (isRanked ? ", plans ranked by rules, answers planned" : ", every plan made") +
                     (report.memoryLimit > 0 ? ", limit " + formatBytes(report.memoryLimit) : "") + "\n";
  if (settings.whatIf)
    text += printWhatIf(report);
  text += printLargest(report);
  for (const std::string &note : report.notes)
    text += "note: " + note + "\n";
  return text;
}
