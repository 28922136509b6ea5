//===- ProgramChanges.cpp - What would make a program's plan fit ------------------===//
#include "ProgramChanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

using namespace ds;
using namespace ds::opt;
using analysis::PlanChoice;

static constexpr size_t kMostChanges = 3; ///< that are named
static constexpr size_t kMostPlans = 8;   ///< that are made for them

namespace {
/// A change with the options that ask for it.
struct Proposal {
  Options options;
  PlanChoice choice;
};
} // namespace

/// `options` with `KEY=VALUE` behind all others, and the change named by it unless it follows from another.
static void set(Proposal &proposal, const std::string &key, int64_t value, bool named = true) {
  proposal.options.sets.push_back(key + "=" + std::to_string(value));
  if (named)
    proposal.choice.change +=
        (proposal.choice.change.empty() ? "" : " and ") + key + " = " + std::to_string(value);
}

/// Asks for a micro-batch of `micro` samples: the inputs' first dimension follows.
static void setMicroBatch(Proposal &proposal, int64_t micro) {
  int64_t times = proposal.choice.microBatch / micro;
  proposal.choice.microBatch = micro;
  proposal.choice.accumulation *= times;
  set(proposal, "train_micro_batch_size_per_gpu", micro);
  set(proposal, "gradient_accumulation_steps", proposal.choice.accumulation, /*named=*/false);
  for (std::string &input : proposal.options.inputs) {
    auto [name, shape] = llvm::StringRef(input).split('=');
    input = name.str() + "=" + std::to_string(micro) + "x" + shape.split('x').second.str();
  }
}

static void setStage(Proposal &proposal, int64_t stage) {
  proposal.choice.zeroStage = stage;
  set(proposal, "zero_optimization.stage", stage);
}

/// Single changes, those that take most memory away first; then two at once.
static std::vector<Proposal> propose(const Options &options, const config::Config &config) {
  Proposal now{options, {}};
  now.choice.zeroStage = config.zero.stage;
  now.choice.microBatch = config.batch.micro;
  now.choice.accumulation = config.batch.accumulation;
  now.choice.recompute = "none";
  now.choice.optimizerHome = "device";
  std::vector<Proposal> all;
  auto add = [&](auto change) {
    all.push_back(now);
    change(all.back());
  };
  bool shards = config.mesh.dp > 1;
  for (int64_t stage = 3; shards && stage > config.zero.stage; --stage)
    add([&](Proposal &p) { setStage(p, stage); });
  // MLIR that comes as it is has its shapes already.
  bool resizes = options.inputKind() != InputKind::Mlir;
  for (int64_t micro = config.batch.micro / 2; resizes && micro >= 1; micro /= 2)
    if (config.batch.micro % micro == 0)
      add([&](Proposal &p) { setMicroBatch(p, micro); });
  if (config.zero.stage > 0 && config.batch.accumulation % 2 == 0)
    add([&](Proposal &p) {
      p.options.ranks *= 2;
      p.choice.accumulation /= 2;
      p.choice.change = std::to_string(p.options.ranks) + " ranks";
      set(p, "gradient_accumulation_steps", p.choice.accumulation, /*named=*/false);
    });
  if (shards && config.zero.stage < 3 && resizes && config.batch.micro > 1)
    add([&](Proposal &p) {
      setStage(p, 3);
      setMicroBatch(p, 1);
    });
  return all;
}

/// Plans the proposal; whether it fits, its figures then in `choice`.
static bool fits(Proposal &proposal, const Planner &plan) {
  Result<analysis::PlanReport> report = plan(proposal.options);
  if (!report || !report->fits())
    return false;
  PlanChoice &choice = proposal.choice;
  for (const analysis::RankPlan &rank : report->ranks) {
    choice.deviceBytes = std::max(choice.deviceBytes, rank.deviceArena);
    choice.hostBytes = std::max(choice.hostBytes, rank.hostArena);
    choice.nvmeBytes = std::max(choice.nvmeBytes, rank.nvmeArena);
  }
  choice.stepSeconds = report->predicted.stepSeconds;
  return true;
}

std::vector<PlanChoice> ds::opt::changesOfProgram(const Options &options, const config::Config &config,
                                                  const Planner &plan) {
  std::vector<PlanChoice> changes;
  std::vector<Proposal> proposals = propose(options, config);
  size_t plans = 0;
  for (Proposal &proposal : proposals) {
    bool several = llvm::StringRef(proposal.choice.change).contains(" and ");
    if (plans++ == kMostPlans || (several && !changes.empty()))
      break;
    if (fits(proposal, plan))
      changes.push_back(proposal.choice);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const PlanChoice &a, const PlanChoice &b) {
    return a.stepSeconds.value_or(0) < b.stepSeconds.value_or(0);
  });
  changes.resize(std::min(changes.size(), kMostChanges));
  return changes;
}
