//===- AnalyticExplanation.cpp - What a stage of a plan by rules keeps, and why ------------===//
//
// The estimate is linear in the layers of a stage: what one more layer takes is what each of them keeps over
// all micro-batches in flight, and the rest lies outside of the layers or is computed again.
//
//===---------------------------------------------------------------------------===//
#include "AnalyticExplanation.h"

#include <algorithm>
#include <cmath>

using namespace ds;
using namespace ds::planner;
using report::PeakPart;
using report::PeakValue;

namespace {
class StageExplainer {
public:
  StageExplainer(const AnalyticCase &what, int64_t stage)
      : plan(what.plan), memory(estimateStageMemory(what.shape, what.plan, what.rates.cluster(), stage)),
        layers(what.shape.layers / what.plan.pp), what(what), stage(stage) {}
  report::PeakExplanation explain();

private:
  void add(const std::string &name, PeakPart part, double bytes, const std::string &reason,
           const std::string &remedy);
  void addStates();
  void addActivations();
  double activationsOf(int64_t layersOfChunk) const;
  std::string divide(int64_t stageOfZero, const char *offload, config::Home home) const;

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

/// The next thing that ZeRO does about a state.
std::string StageExplainer::divide(int64_t stageOfZero, const char *offload, config::Home home) const {
  int64_t ranks = plan.dp * plan.sp;
  if (plan.zeroStage < stageOfZero && ranks > 1)
    return "zero_optimization.stage = " + std::to_string(stageOfZero) + " divides it by " +
           std::to_string(ranks) + " ranks";
  if (home == config::Home::Device)
    return std::string("zero_optimization.") + offload + ".device = cpu takes it off the device";
  return "more ranks, or more pipeline stages";
}

void StageExplainer::addStates() {
  std::string held = " of the stage's " + std::to_string(layers) + " layers: kept from step to step";
  add("parameters", PeakPart::Parameters, memory.parameters, "state" + held,
      divide(3, "offload_param", plan.parameterHome));
  add("gradients", PeakPart::Accumulators, memory.gradients,
      "sums of the stage's " + std::to_string(layers) + " layers until the update",
      divide(2, "offload_optimizer", plan.optimizerHome));
  add("optimizer states", PeakPart::Moments, memory.optimizer, "state" + held,
      divide(1, "offload_optimizer", plan.optimizerHome));
  add("gathered buckets", PeakPart::Gathered, memory.gathered, "gathered for the layer at work and the next",
      "a smaller zero_optimization.stage3_prefetch_bucket_size");
  add("reduced buckets", PeakPart::Exchanged, memory.reduced,
      "gradients on their way into a reduction, the running bucket and the next",
      "a smaller zero_optimization.reduce_bucket_size");
}

/// Activations if each chunk had so many layers.
double StageExplainer::activationsOf(int64_t layersOfChunk) const {
  cost::ModelShape shape = what.shape;
  shape.layers = layersOfChunk * plan.pp * plan.interleave;
  return estimateStageMemory(shape, plan, what.rates.cluster(), stage).activations;
}

void StageExplainer::addActivations() {
  double each = activationsOf(2) - activationsOf(1); // of one layer per chunk, over what is in flight
  double kept = each * static_cast<double>(layers / plan.interleave);
  bool recomputes = plan.recompute == cost::Recompute::Full;
  add("activations of " + std::to_string(layers) + " layers", PeakPart::Activations, kept,
      std::string(recomputes ? "inputs of layers, to compute them again"
                             : "saved for the backward pass of each layer") +
          (plan.pp > 1 ? ", for each micro-batch in flight" : ""),
      recomputes ? "a smaller train_micro_batch_size_per_gpu"
                 : "activation_checkpointing keeps inputs of layers alone");
  std::string rest = stage == plan.pp - 1 ? "logits and the last norm's result, in fp32, for the loss"
                                          : "dropout masks of the embedding";
  if (plan.recompute != cost::Recompute::None)
    rest += ", and the layer that is computed again";
  add("activations outside the layers", PeakPart::Activations, memory.activations - kept, rest,
      "a smaller train_micro_batch_size_per_gpu, or tensor parallelism");
}

report::PeakExplanation StageExplainer::explain() {
  result.op = "backward";
  result.layer = "the last layer in flight";
  result.segment = "stage " + std::to_string(stage);
  addStates();
  addActivations();
  add("workspace", PeakPart::Workspace, memory.workspace, kWorkspaceText,
      "none is needed: less memory means smaller pieces, which take longer");
  result.largest = report::takeLargest(std::move(result.largest));
  return std::move(result);
}

report::PeakExplanation ds::planner::explainStage(const AnalyticCase &what, int64_t stage) {
  return StageExplainer(what, stage).explain();
}
