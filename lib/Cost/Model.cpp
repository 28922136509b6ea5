//===- Model.cpp - A transformer's shape, and how it is spread over devices ----------===//
#include "ds/Cost/Model.h"

namespace ds::cost {

int64_t ModelShape::attentionProducts() const {
  return attentionWeights == 0 ? 2 * hidden * (queryWidth() + kvWidth()) : attentionWeights;
}

int64_t ModelShape::layerParameters() const {
  int64_t h = hidden, q = queryWidth(), kv = kvWidth(), f = ffnWidth();
  int64_t products = attentionProducts() + (gated ? 3 : 2) * h * f;
  int64_t added = biases ? q + 2 * kv + h + (gated ? 2 : 1) * f + h : 0;
  int64_t norms = 2 * (rmsNorm ? h : 2 * h);
  return products + added + norms + moreLayerParameters;
}

int64_t ModelShape::embeddingParameters() const {
  int64_t rows = positions == 0 ? seq : positions;
  return (vocab + (learnedPositions ? rows : 0)) * hidden + moreEmbeddingParameters;
}

int64_t ModelShape::parameters() const {
  int64_t last = rmsNorm ? hidden : 2 * hidden;
  return layers * layerParameters() + embeddingParameters() + last + (tied ? 0 : vocab * hidden);
}

namespace {
/// One requirement: `divisor` divides `value`.
struct Divides {
  const char *what, *by;
  int64_t value, divisor;
};
} // namespace

static std::string spell(const char *what, int64_t value) {
  return std::string(what) + " = " + std::to_string(value);
}

/// Every size must be there.
static Status checkPositive(const ModelShape &shape, const ParallelPlan &plan) {
  const std::pair<const char *, int64_t> positive[] = {{"layers", shape.layers},
                                                       {"hidden", shape.hidden},
                                                       {"heads", shape.heads},
                                                       {"vocab", shape.vocab},
                                                       {"seq", shape.seq},
                                                       {"dp", plan.dp},
                                                       {"tp", plan.tp},
                                                       {"pp", plan.pp},
                                                       {"sp", plan.sp},
                                                       {"interleave", plan.interleave},
                                                       {"micro-batch", plan.microBatch},
                                                       {"accumulation", plan.accumulation}};
  for (auto [what, value] : positive)
    if (value < 1)
      return Error{ExitCode::Invalid, spell(what, value) + " is not positive", "give a number of at least 1"};
  return {};
}

/// What one degree asks of another.
static Status checkDegrees(const ParallelPlan &plan) {
  if (plan.interleave > 1 && (plan.pp == 1 || plan.accumulation % plan.pp != 0))
    return Error{ExitCode::Invalid,
                 spell("interleave", plan.interleave) +
                     " needs a pipeline whose stages divide the micro-batches, but " + spell("pp", plan.pp) +
                     " and " + spell("accumulation", plan.accumulation),
                 "set interleave to 1"};
  if (plan.checkpointHome == Home::Nvme ||
      (plan.checkpointHome != Home::Device && plan.recompute != Recompute::Full))
    return Error{ExitCode::Invalid, "checkpoints go to the host, and only where every layer is recomputed",
                 "switch recomputation on, or cpu_checkpointing off"};
  if (plan.zeroStage < 0 || plan.zeroStage > 3 || (plan.pp > 1 && plan.zeroStage > 1))
    return Error{ExitCode::Invalid,
                 spell("ZeRO stage", plan.zeroStage) + " does not go with " + spell("pp", plan.pp),
                 "a pipeline goes with stage 0 or 1"};
  if (plan.parameterHome != Home::Device && plan.zeroStage != 3)
    return Error{ExitCode::Invalid,
                 "parameters are offloaded under ZeRO stage 3 only, but " + spell("stage", plan.zeroStage),
                 "choose stage 3"};
  return {};
}

/// Every stage has a layer; chunks of layers are all of one size.
static Status checkLayers(const ModelShape &shape, const ParallelPlan &plan) {
  if (plan.interleave > 1 && shape.layers % (plan.pp * plan.interleave) != 0)
    return Error{ExitCode::Invalid,
                 spell("layers", shape.layers) + " is not divisible by " +
                     spell("pp * interleave", plan.pp * plan.interleave),
                 "choose a degree that divides"};
  if (shape.layers < plan.pp)
    return Error{ExitCode::Invalid,
                 spell("layers", shape.layers) + " leaves no layer to some of " + spell("pp", plan.pp) +
                     " stages",
                 "choose at most as many stages as layers"};
  return {};
}

Status checkPlan(const ModelShape &shape, const ParallelPlan &plan) {
  if (Status status = checkPositive(shape, plan); !status)
    return status;
  int64_t kvHeads = shape.kvHeads == 0 ? shape.heads : shape.kvHeads;
  const Divides rules[] = {{"hidden", "heads", shape.headSize == 0 ? shape.hidden : shape.heads, shape.heads},
                           {"heads", "key-value heads", shape.heads, kvHeads},
                           {"heads", "tp * sp", shape.heads, plan.tp * plan.sp},
                           {"ffn", "tp", shape.ffnWidth(), plan.tp},
                           {"seq", "sp", shape.seq, plan.sp}};
  for (const Divides &rule : rules)
    if (rule.value % rule.divisor != 0)
      return Error{ExitCode::Invalid,
                   spell(rule.what, rule.value) + " is not divisible by " + spell(rule.by, rule.divisor),
                   "choose a degree that divides"};
  if (Status status = checkLayers(shape, plan); !status)
    return status;
  return checkDegrees(plan);
}

int64_t layersOfStage(const ModelShape &shape, const ParallelPlan &plan, int64_t stage) {
  return shape.layers / plan.pp + (stage < shape.layers % plan.pp ? 1 : 0);
}

} // namespace ds::cost
