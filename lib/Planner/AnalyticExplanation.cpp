//===- AnalyticExplanation.cpp - What a stage of a plan by rules keeps, and why ------------===//
//
// Beside each value stands the first of some changes that makes it smaller. Whether it does is not argued but
// estimated: the value is asked for again under the changed plan, so that no advice is given that changes
// nothing, such as a stage of ZeRO on one rank.
//
//===---------------------------------------------------------------------------===//
#include "AnalyticExplanation.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace ds;
using namespace ds::planner;
using report::PeakPart;
using report::PeakValue;

namespace {
/// A change of the plan, and how one asks for it.
struct Change {
  std::string text;
  cost::ParallelPlan plan;
};

/// Bytes of one value of the stage under a plan.
using ValueOf = std::function<double(const cost::ParallelPlan &)>;

class StageExplainer {
public:
  StageExplainer(const AnalyticCase &what, int64_t stage)
      : plan(what.plan), memory(memoryOf(what, what.plan, stage)),
        layers(layersOfStage(what.shape, what.plan, stage)), what(what), stage(stage) {}
  report::PeakExplanation explain();

private:
  static cost::MemoryEstimate memoryOf(const AnalyticCase &what, const cost::ParallelPlan &plan,
                                       int64_t stage) {
    return estimateStageMemory(what.shape, plan, what.rates.cluster(), std::min(stage, plan.pp - 1));
  }
  /// What layers keep; the rest of the activations lies outside of them.
  double keptBytes(const cost::ParallelPlan &of) const {
    cost::StageActivations parts = stageActivations(what.shape, of, std::min(stage, of.pp - 1));
    return parts.layers * parts.perLayer;
  }
  Change change(const std::string &text, const std::function<void(cost::ParallelPlan &)> &apply) const;
  std::string remedy(const ValueOf &valueOf, const std::vector<Change> &changes,
                     const std::string &otherwise) const;
  std::vector<Change> divideState(int64_t zeroStage, bool isParameter) const;
  std::vector<Change> splitLayers() const;
  std::vector<Change> smallerBatch() const;
  void add(const std::string &name, PeakPart part, double bytes, const std::string &reason,
           const std::string &remedy);
  void addStates();
  void addBuckets();
  void addActivations();

  const cost::ParallelPlan &plan;
  cost::MemoryEstimate memory;
  int64_t layers; ///< of the stage
  const AnalyticCase &what;
  int64_t stage;
  report::PeakExplanation result;
};
} // namespace

void StageExplainer::add(const std::string &name, PeakPart part, double bytes, const std::string &reason,
                         const std::string &remedy) {
  if (bytes < 1)
    return;
  PeakValue value;
  value.name = name;
  value.part = part;
  value.bytes = static_cast<int64_t>(std::ceil(std::min(bytes, 1e18)));
  value.reason = reason;
  value.remedy = remedy;
  result.largest.push_back(value);
}

Change StageExplainer::change(const std::string &text,
                              const std::function<void(cost::ParallelPlan &)> &apply) const {
  Change changed{text, plan};
  apply(changed.plan);
  return changed;
}

/// The first change that is possible and makes the value smaller.
std::string StageExplainer::remedy(const ValueOf &valueOf, const std::vector<Change> &changes,
                                   const std::string &otherwise) const {
  std::optional<int64_t> devices = what.rates.cluster().devices();
  double now = valueOf(plan);
  for (const Change &each : changes)
    if (checkPlan(what.shape, each.plan) && (!devices || each.plan.ranks() <= *devices) &&
        valueOf(each.plan) < 0.999 * now)
      return each.text + (cost::hasPass(each.plan) ? "" : " (by rules alone)");
  return otherwise;
}

/// What ZeRO does about a state, then what more devices do. The optimizer leaves the device from stage 1 on,
/// parameters under stage 3.
std::vector<Change> StageExplainer::divideState(int64_t zeroStage, bool isParameter) const {
  using Plan = cost::ParallelPlan;
  std::string zero = "zero_optimization.stage = ", ranks = std::to_string(plan.dp * plan.sp);
  std::string offload =
      std::string("zero_optimization.offload_") + (isParameter ? "param" : "optimizer") + ".device = cpu";
  int64_t least = isParameter ? 3 : 1;
  auto leave = [&](Plan &p) {
    (isParameter ? p.parameterHome : p.optimizerHome) = config::Home::Cpu;
    p.zeroStage = std::max(p.zeroStage, least);
  };
  std::vector<Change> changes;
  if (plan.zeroStage < zeroStage)
    changes.push_back(change(zero + std::to_string(zeroStage) + " divides it by " + ranks + " ranks",
                             [&](Plan &p) { p.zeroStage = zeroStage; }));
  changes.push_back(
      change(offload + (plan.zeroStage < least ? ", with stage = " + std::to_string(least) + "," : "") +
                 " takes it off the device",
             leave));
  changes.push_back(change("more ranks, by which it is divided", [](Plan &p) { p.dp *= 2; }));
  changes.push_back(change("more pipeline stages, with fewer layers each", [](Plan &p) { p.pp *= 2; }));
  for (Change &each : splitLayers())
    changes.push_back(std::move(each));
  return changes;
}

std::vector<Change> StageExplainer::splitLayers() const {
  return {change("tensor_parallel.autotp_size = " + std::to_string(2 * plan.tp) + " splits the layers",
                 [](cost::ParallelPlan &p) { p.tp *= 2; })};
}

std::vector<Change> StageExplainer::smallerBatch() const {
  return {change("a smaller train_micro_batch_size_per_gpu", [](cost::ParallelPlan &p) {
    p.accumulation *= p.microBatch;
    p.microBatch = 1;
  })};
}

void StageExplainer::addStates() {
  std::string held = " of the stage's " + std::to_string(layers) + " layers: kept from step to step";
  auto of = [&](double cost::MemoryEstimate::*part) {
    return [this, part](const cost::ParallelPlan &p) { return memoryOf(what, p, stage).*part; };
  };
  const std::string none = "none: only a smaller model has less of it";
  add("parameters", PeakPart::Parameters, memory.parameters, "state" + held,
      remedy(of(&cost::MemoryEstimate::parameters), divideState(3, /*isParameter=*/true), none));
  add("gradients", PeakPart::Accumulators, memory.gradients,
      "sums of the stage's " + std::to_string(layers) + " layers until the update",
      remedy(of(&cost::MemoryEstimate::gradients), divideState(2, /*isParameter=*/false), none));
  add("optimizer states", PeakPart::Moments, memory.optimizer, "state" + held,
      remedy(of(&cost::MemoryEstimate::optimizer), divideState(1, /*isParameter=*/false), none));
}

void StageExplainer::addBuckets() {
  auto gathered = [this](const cost::ParallelPlan &p) { return memoryOf(what, p, stage).gathered; };
  auto reduced = [this](const cost::ParallelPlan &p) { return memoryOf(what, p, stage).reduced; };
  const std::string none = "none: two layers or buckets are under way at a time";
  add("gathered buckets", PeakPart::Gathered, memory.gathered, "gathered for the layer at work and the next",
      remedy(gathered, splitLayers(), none));
  add("reduced buckets", PeakPart::Exchanged, memory.reduced,
      "gradients on their way into a reduction, the running bucket and the next",
      remedy(reduced, splitLayers(), none));
}

void StageExplainer::addActivations() {
  using Plan = cost::ParallelPlan;
  double kept = keptBytes(plan);
  bool recomputes = plan.recompute == cost::Recompute::Full;
  std::vector<Change> changes = {
      change("activation_checkpointing keeps inputs of layers alone",
             [](Plan &p) { p.recompute = cost::Recompute::Full; }),
      change("activation_checkpointing.partition_activations shares them out over " +
                 std::to_string(plan.tp) + " ranks",
             [](Plan &p) { p.partitionCheckpoints = p.tp > 1; })};
  for (Change &each : smallerBatch())
    changes.push_back(std::move(each));
  changes.push_back(change("activation_checkpointing.cpu_checkpointing takes them off the device",
                           [](Plan &p) { p.checkpointHome = config::Home::Cpu; }));
  add("activations of " + std::to_string(layers) + " layers", PeakPart::Activations, kept,
      std::string(recomputes ? "inputs of layers, to recompute them"
                             : "saved for the backward pass of each layer") +
          (plan.pp > 1 ? ", for each micro-batch in flight" : ""),
      remedy([this](const Plan &p) { return keptBytes(p); }, changes, "shorter sequences"));
  std::string rest = stage == plan.pp - 1 ? "logits and the last norm's result, in fp32, for the loss"
                                          : "dropout masks of the embedding";
  if (plan.recompute != cost::Recompute::None)
    rest += ", and the layer that is recomputed";
  changes = smallerBatch();
  changes.push_back(change("loss_chunks = " + std::to_string(8 * plan.lossChunks) + " makes logits in parts",
                           [](Plan &p) { p.lossChunks *= 8; }));
  for (Change &each : splitLayers())
    changes.push_back(std::move(each));
  auto outside = [this](const Plan &p) { return memoryOf(what, p, stage).activations - keptBytes(p); };
  add("activations outside the layers", PeakPart::Activations, memory.activations - kept, rest,
      remedy(outside, changes, "shorter sequences"));
}

report::PeakExplanation StageExplainer::explain() {
  result.op = "backward";
  result.layer = "the last layer in flight";
  result.segment = "stage " + std::to_string(stage);
  addStates();
  addBuckets();
  addActivations();
  add("workspace", PeakPart::Workspace, memory.workspace, kWorkspaceText,
      "none is needed: less memory means smaller pieces, which take longer");
  result.largest = report::takeLargest(std::move(result.largest));
  return std::move(result);
}

report::PeakExplanation ds::planner::explainStage(const AnalyticCase &what, int64_t stage) {
  return StageExplainer(what, stage).explain();
}
