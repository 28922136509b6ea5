//===- Norms.cpp - Norms of channels, of their groups and of single samples -------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>

namespace ds::ts {

namespace {

/// One number a channel in the shape of x, [N, C, L...].
TensorRef spreadChannels(Call &call, const TensorRef &channels, const TensorRef &x) {
  if (channels->shape != Shape{x->shape[1]})
    fail(call.schema.name() + " of shape " + spellList(x->shape) + " with one of " +
             spellList(channels->shape) + " for its channels",
         "check the shapes given by --input");
  return call.b.broadcast(call.b.convert(channels, x->type), {1}, x->shape);
}

/// x * weight + bias, each of which may be null.
TensorRef scaleChannels(Call &call, TensorRef x) {
  if (TensorRef weight = call.optionalTensor("weight"))
    x = call.b.binary("mul", x, spreadChannels(call, weight, x));
  if (TensorRef bias = call.optionalTensor("bias"))
    x = call.b.binary("add", x, spreadChannels(call, bias, x));
  return x;
}

TensorRef normInput(Call &call, int64_t leastRank) {
  TensorRef x = call.tensor("input");
  if (x->rank() < leastRank || !c10::isFloatingType(x->type))
    fail(call.schema.name() + " of shape " + spellList(x->shape) + " and type " + spell(x->type),
         "check the shapes given by --input");
  return x;
}

/// The affine map that statistics which were kept make of each channel: (x - mean) / sqrt(variance + eps).
TensorRef normByKept(Call &call, const TensorRef &x) {
  Builder &b = call.b;
  TensorRef mean = call.tensor("running_mean"), variance = call.tensor("running_var");
  TensorRef rstd = b.unary("rsqrt", combine(b, "add", variance, call.number("eps")));
  TensorRef centered = b.binary("sub", x, spreadChannels(call, mean, x));
  return scaleChannels(call, b.binary("mul", centered, spreadChannels(call, rstd, x)));
}

/// Training: the statistics are the micro-batch's, and the buffers of those kept have next values.
TensorRef normByBatch(Call &call, const TensorRef &x) {
  if (x->numel() < 2 * x->shape[1])
    fail(call.schema.name() + " in training of shape " + spellList(x->shape) +
             ", which has one element a channel",
         "give more samples by --input");
  BatchNorm norm;
  norm.weight = call.optionalTensor("weight");
  norm.bias = call.optionalTensor("bias");
  norm.runningMean = call.optionalTensor("running_mean");
  norm.runningVariance = call.optionalTensor("running_var");
  norm.momentum = call.number("momentum");
  norm.epsilon = call.number("eps");
  for (const TensorRef &channels : {norm.weight, norm.bias, norm.runningMean, norm.runningVariance})
    if (channels && channels->shape != Shape{x->shape[1]})
      spreadChannels(call, channels, x); // which fails
  for (TensorRef kept : {norm.runningMean, norm.runningVariance})
    if (kept && !call.b.states.updateBuffer(kept))
      throw UnsupportedWrite(call.schema.name() + " that keeps statistics in what is no buffer");
  return emitBatchNorm(call.b, x, norm);
}

TensorRef batchNormOf(Call &call) {
  TensorRef x = normInput(call, 2);
  if (call.flag("training") || !call.has("running_mean"))
    return normByBatch(call, x);
  return normByKept(call, x);
}

Value batchNorm(Call &call) { return batchNormOf(call); }

/// What also returns what its gradient reads.
Value batchNormWithMoments(Call &call) {
  std::vector<Value> results = {batchNormOf(call)};
  while (results.size() < call.schema.returns().size())
    results.push_back(Unknown{"the moments of a batch norm"});
  return makeTuple(std::move(results));
}

/// Groups of a sample's channels, as the rows of a matrix.
TensorRef normGroups(Call &call, const TensorRef &x, int64_t groups, double epsilon) {
  const int64_t samples = x->shape[0], channels = x->shape[1];
  if (groups < 1 || channels % groups != 0 || x->numel() == 0)
    fail(call.schema.name() + " of shape " + spellList(x->shape) + " in " + std::to_string(groups) +
         " groups");
  const int64_t length = x->numel() / samples / groups;
  TensorRef rows = call.b.reshape(x, {samples, groups, length});
  TensorRef normal = emitLayerNorm(call.b, rows, nullptr, nullptr, 1, epsilon);
  return scaleChannels(call, call.b.reshape(normal, x->shape));
}

Value groupNorm(Call &call) {
  TensorRef x = normInput(call, 2);
  return normGroups(call, x, call.integer(call.has("num_groups") ? "num_groups" : "group"),
                    call.numberOr("eps", 1e-5));
}

Value groupNormWithMoments(Call &call) {
  constexpr const char *moments = "the moments of a group norm";
  return makeTuple({groupNorm(call), Unknown{moments}, Unknown{moments}});
}

/// Each channel of each sample by itself: as many groups as channels.
Value instanceNorm(Call &call) {
  TensorRef x = normInput(call, 3);
  if (!call.flag("use_input_stats"))
    return normByKept(call, x);
  if (call.has("running_mean"))
    throw Unsupported(call.schema.name() + " that keeps running statistics (track_running_stats=True)");
  return normGroups(call, x, x->shape[1], call.number("eps"));
}

constexpr Operator operators[] = {
    {"aten::batch_norm", batchNorm},       {"aten::native_batch_norm", batchNormWithMoments},
    {"aten::group_norm", groupNorm},       {"aten::native_group_norm", groupNormWithMoments},
    {"aten::instance_norm", instanceNorm},
};

} // namespace

OperatorList normOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
