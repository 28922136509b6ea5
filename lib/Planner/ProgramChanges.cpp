//===- ProgramChanges.cpp - What would make a program's plan fit ------------------===//
#include "ds/Planner/ProgramChanges.h"

#include "SequenceLength.h"
#include "ds/Planner/AnalyticQueries.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <tuple>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;

static constexpr size_t kMostSmaller = 3; ///< plans that are named
static constexpr size_t kMostPlans = 8;   ///< that are tried

/// States at `home`, one kind at a time, as far as the stage of `now` allows and they are not there yet.
static void proposeHome(const Proposal &now, config::Home home, std::vector<Proposal> &all) {
  if (now.choice.zeroStage > 0 && now.optimizerHome < home) {
    all.push_back(now);
    all.back().setOptimizerHome(home);
  }
  if (now.choice.zeroStage == 3 && now.parameterHome < home) {
    all.push_back(now);
    all.back().setParameterHome(home);
  }
}

/// Single changes, stages first and of each kind the smallest change first; then two at once.
static std::vector<Proposal> propose(const PlanSettings &settings, const config::Config &config,
                                     const Elsewhere &elsewhere) {
  Proposal now(settings, config);
  std::vector<Proposal> all;
  auto add = [&](auto change) {
    all.push_back(now);
    change(all.back());
  };
  bool shards = config.mesh.dp > 1;
  for (int64_t stage = config.zero.stage + 1; shards && stage <= 3; ++stage)
    add([&](Proposal &p) { p.setStage(stage); });
  // MLIR that comes as it is has its shapes already.
  bool resizes = settings.inputKind() != InputKind::Mlir;
  for (int64_t micro = config.batch.micro / 2; resizes && micro >= 1; micro /= 2)
    if (config.batch.micro % micro == 0)
      add([&](Proposal &p) { p.setMicroBatch(micro); });
  llvm::SmallVector<config::Home, 2> homes;
  if (elsewhere.host)
    homes.push_back(config::Home::Cpu);
  if (elsewhere.nvme)
    homes.push_back(config::Home::Nvme);
  for (config::Home home : homes)
    proposeHome(now, home, all);
  if (config.zero.stage > 0 && config.batch.accumulation % 2 == 0)
    add([&](Proposal &p) {
      p.settings.ranks *= 2;
      p.choice.accumulation /= 2;
      p.choice.change = std::to_string(p.settings.ranks) + " ranks";
      p.set("gradient_accumulation_steps", p.choice.accumulation, /*named=*/false);
    });
  if (shards && config.zero.stage < 3 && resizes && config.batch.micro > 1)
    add([&](Proposal &p) {
      p.setStage(3);
      p.setMicroBatch(1);
    });
  for (config::Home home : homes)
    add([&](Proposal &p) {
      if (p.choice.zeroStage != 3)
        p.setStage(3);
      p.setOptimizerHome(home);
      p.setParameterHome(home);
    });
  return all;
}

/// The change joins two others.
static bool isJoined(const Proposal &proposal) {
  return llvm::StringRef(proposal.choice.change).contains(" and ");
}

/// Puts `choice` behind those of `sorted` whose `key` is at most its own.
template <class Key>
static void insertBy(std::vector<PlanChoice> &sorted, const PlanChoice &choice, Key key) {
  auto place =
      llvm::partition_point(sorted, [&](const PlanChoice &other) { return key(other) <= key(choice); });
  sorted.insert(place, choice);
}

/// The first few of `changes`.
static std::vector<PlanChoice> takeFirst(std::vector<PlanChoice> changes) {
  changes.resize(std::min(changes.size(), kMostSmaller));
  return changes;
}

Expect ds::planner::expectByRules(const AnalyticCase &rules, const report::PlanReport &report,
                                  const PlanSettings &settings) {
  constexpr double kMargin = 1.25; // by which rules may err
  return [&rules, rates = cost::Rates(calibrate(rules, report)),
          ranks = settings.ranks](const Proposal &proposal) -> std::optional<double> {
    cost::ParallelPlan plan = rules.plan;
    plan.zeroStage = proposal.choice.zeroStage;
    plan.microBatch = proposal.choice.microBatch;
    plan.accumulation = proposal.choice.accumulation;
    plan.dp = plan.dp * proposal.settings.ranks / ranks;
    plan.optimizerHome = proposal.optimizerHome;
    plan.parameterHome = proposal.parameterHome;
    const cost::Candidate expected = estimate(rules.shape, plan, rates);
    if (expected.memory.peakBytes() > kMargin * static_cast<double>(cost::peakLimit(rates.cluster())))
      return std::nullopt;
    return expected.seconds;
  };
}

//===----------------------------------------------------------------------===//
// Gradients that wait
//===----------------------------------------------------------------------===//

namespace {
/// A setting that keeps gradients until the end of a step, and what says otherwise.
struct Obstacle {
  std::vector<std::string> sets; ///< `KEY=VALUE`, in the order in which they are given
  std::string name;              ///< what a reader is told
};
} // namespace

/// What makes a gradient of `config` wait for all others, or for other micro-steps.
static std::vector<Obstacle> findObstacles(const config::Config &config) {
  std::vector<Obstacle> found;
  const config::Precision &precision = config.precision;
  if (config.gradientClipping > 0)
    found.push_back({{"gradient_clipping=0"}, "gradient_clipping = 0"});
  if (precision.fp16.enabled)
    found.push_back({{"fp16.enabled=false", "bf16.enabled=true", "bf16.check_grad_overflow=false"},
                     "bf16 without bf16.check_grad_overflow in place of fp16"});
  if (precision.bf16.enabled && precision.bf16.checkGradOverflow)
    found.push_back({{"bf16.check_grad_overflow=false"}, "bf16.check_grad_overflow = false"});
  if (config.skipsBadSteps)
    found.push_back({{"skip_bad_steps=false"}, "skip_bad_steps = false"});
  const config::Setting *reduction = config.find("gradient_reduction");
  const bool isOnce = config.mesh.dp > 1 && reduction && reduction->value == "\"once_per_step\"";
  if (config.batch.accumulation > 1 && isOnce)
    found.push_back({{"gradient_reduction=\"each_micro_step\""}, "gradient_reduction = \"each_micro_step\""});
  if (config.batch.accumulation > 1)
    found.push_back({{"gradient_accumulation_steps=1", "train_batch_size=\"auto\""},
                     "gradient_accumulation_steps = 1 (fewer samples a step)"});
  return found;
}

/// The plan without `obstacles`; nothing where there is none.
static std::optional<PlanChoice> planWithout(llvm::ArrayRef<Obstacle> obstacles, const PlanSettings &settings,
                                             const config::Config &config, const PlanFunction &plan) {
  Proposal proposal(settings, config);
  std::vector<std::string> names;
  for (const Obstacle &obstacle : obstacles) {
    llvm::append_range(proposal.settings.sets, obstacle.sets);
    names.push_back(obstacle.name);
  }
  if (!proposal.plan(plan))
    return std::nullopt;
  proposal.choice.change = llvm::join(names, " and ");
  return proposal.choice;
}

/// The plan without all of `obstacles`, or without fewer: the last is put back where the plan fits with it,
/// or takes no more with it, then the one before.
static std::optional<PlanChoice> planEarly(std::vector<Obstacle> obstacles, const PlanSettings &settings,
                                           const config::Config &config, const PlanFunction &plan) {
  std::optional<PlanChoice> best = planWithout(obstacles, settings, config, plan);
  for (size_t index = obstacles.size(); best && obstacles.size() > 1 && index-- > 0;) {
    std::vector<Obstacle> fewer = obstacles;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(index));
    std::optional<PlanChoice> other = planWithout(fewer, settings, config, plan);
    if (!other || (!other->fits && other->deviceBytes > best->deviceBytes))
      continue;
    best = other;
    obstacles = std::move(fewer);
  }
  return best;
}

std::optional<std::string> ds::planner::noteEarlyUpdates(const PlanSettings &settings,
                                                         const config::Config &config,
                                                         const PlanFunction &plan,
                                                         const report::PlanReport &report) {
  auto fullest = std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const report::RankPlan &a, const report::RankPlan &b) { return a.deviceArena < b.deviceArena; });
  const int64_t lacking = fullest->deviceArena - report.memoryLimit;
  const int64_t gradients = fullest->atPeak[static_cast<unsigned>(report::Category::Gradients)];
  const config::OffloadOptimizer &optimizer = config.zero.offloadOptimizer;
  const bool isEarly = optimizer.device == config::Home::Cpu && optimizer.superOffload;
  std::vector<Obstacle> obstacles = findObstacles(config);
  if (report.memoryLimit <= 0 || lacking <= 0 || lacking >= gradients || isEarly || obstacles.empty())
    return std::nullopt;
  const std::optional<PlanChoice> early = planEarly(std::move(obstacles), settings, config, plan);
  if (!early || early->deviceBytes >= fullest->deviceArena)
    return std::nullopt;
  const int64_t left = early->deviceBytes - report.memoryLimit;
  return "the plan lacks " + formatBytes(lacking) + ", less than the " + formatBytes(gradients) +
         " of gradients at its peak, which wait: with " + early->change +
         ", parameters are updated and gradients freed one after the other, and the plan takes " +
         formatBytes(early->deviceBytes) + " (" + formatExact(early->deviceBytes) + " bytes), " +
         (left <= 0 ? "which fits" : "still " + formatBytes(left) + " too many");
}

std::optional<PlanChoice> ds::planner::shorterSamples(PlanSettings settings, const config::Config &config,
                                                      const PlanFunction &plan,
                                                      std::optional<int64_t> longest) {
  constexpr int64_t kShortest = 128; ///< below it nobody looks
  constexpr size_t kMostLengths = 3; ///< that are planned
  // MLIR has its shapes already, and a trained archive's shapes are its own.
  if (settings.inputKind() != InputKind::HfConfig)
    return std::nullopt;
  Result<int64_t> length = findSequence(settings, config, "a shorter sequence");
  if (!length)
    return std::nullopt;
  size_t plans = 0;
  for (int64_t half = *length / 2; half >= kShortest && plans < kMostLengths; half /= 2) {
    if (half > longest.value_or(half))
      continue;
    ++plans;
    Proposal proposal(settings, config);
    proposal.resizeInputs(1, *length, half);
    proposal.choice.change = spellLength(config.batch.micro, half);
    if (proposal.plan(plan) && proposal.choice.fits)
      return proposal.choice;
  }
  return std::nullopt;
}

/// Those of `proposals` that are worth a plan, in the order in which they are tried: single ones first.
static std::vector<Proposal> rank(std::vector<Proposal> proposals, const Expect &expect) {
  std::vector<std::tuple<bool, double, size_t>> ranked;
  for (const auto &[index, proposal] : llvm::enumerate(proposals))
    if (const std::optional<double> seconds = expect ? expect(proposal) : 0)
      ranked.emplace_back(isJoined(proposal), *seconds, index);
  llvm::sort(ranked);
  std::vector<Proposal> first;
  for (const auto &[joined, seconds, index] : llvm::ArrayRef(ranked).take_front(kMostPlans))
    first.push_back(std::move(proposals[index]));
  return first;
}

std::optional<PlanChoice> ds::planner::changeOfProgram(const PlanSettings &settings,
                                                       const config::Config &config, const PlanFunction &plan,
                                                       const Elsewhere &elsewhere, const Expect &expect) {
  for (Proposal &proposal : rank(propose(settings, config, elsewhere), expect))
    if (proposal.plan(plan) && proposal.choice.fits)
      return proposal.choice;
  return std::nullopt;
}

std::vector<PlanChoice> ds::planner::changesWithoutPass(const AnalyticCase &rules,
                                                        const report::PlanReport &report) {
  constexpr size_t kMostEstimates = 2;
  std::vector<PlanChoice> changes =
      choicesOf(cost::changesThatFit(rules.shape, rules.plan, cost::Rates(calibrate(rules, report))));
  llvm::erase_if(changes, [](const PlanChoice &choice) { return choice.hasPass; });
  changes.resize(std::min(changes.size(), kMostEstimates));
  // Beside the program's step stands what the change adds by rules.
  double now = estimateStep(rules.shape, rules.plan, rules.rates).seconds;
  double scale = now > 0 && report.predicted.stepSeconds ? *report.predicted.stepSeconds / now : 1;
  for (PlanChoice &choice : changes)
    *choice.stepSeconds *= scale;
  return changes;
}

std::vector<PlanChoice> ds::planner::smallerPlansOfProgram(const PlanSettings &settings,
                                                           const config::Config &config,
                                                           const PlanFunction &plan, int64_t peak,
                                                           const Elsewhere &elsewhere) {
  std::vector<PlanChoice> changes;
  std::vector<Proposal> proposals = propose(settings, config, elsewhere);
  for (Proposal &proposal : llvm::MutableArrayRef(proposals).take_front(kMostPlans))
    if (!isJoined(proposal) && proposal.plan(plan) && proposal.choice.deviceBytes < peak)
      insertBy(changes, proposal.choice, [](const PlanChoice &choice) { return choice.deviceBytes; });
  return takeFirst(std::move(changes));
}
