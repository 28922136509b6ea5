//===- Profile.cpp - Operations of a model, counted as DeepSpeed's profiler does -----===//
//
// The rules are those of deepspeed/profiling/flops_profiler/profiler.py, 0.14 to 0.19.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Profile.h"

namespace ds::cost {

OpCount countProduct(double rows, double in, double out) { return {2 * rows * in * out, rows * in * out}; }

OpCount countAddmm(double rows, double in, double out, double added) {
  return countProduct(rows, in, out) + countElementwise(added);
}

OpCount countConvolution(double outputs, double window, double inChannels, double outChannels, double groups,
                         bool bias) {
  // `inChannels` are the input's own, so that groups divide once.
  double macs = window * inChannels * (outChannels / groups) * outputs;
  return {2 * macs + (bias ? outChannels * outputs : 0), macs};
}

OpCount countElementwise(double elements) { return {elements, 0}; }

OpCount countNorm(double elements, bool affine) { return {elements * (affine ? 5 : 4), 0}; }

namespace {
/// The sizes of one pass, as doubles.
struct Pass {
  Pass(const ModelShape &shape, int64_t batch)
      : tokens(static_cast<double>(batch * shape.seq)), b(static_cast<double>(batch)),
        s(static_cast<double>(shape.seq)), h(static_cast<double>(shape.hidden)),
        a(static_cast<double>(shape.heads)), q(static_cast<double>(shape.queryWidth())),
        kv(static_cast<double>(shape.kvWidth())), f(static_cast<double>(shape.ffnWidth())),
        V(static_cast<double>(shape.vocab)) {}
  double tokens, b, s, h, a, q, kv, f, V;
};
} // namespace

static OpCount attentionCount(const Pass &p) {
  double scores = p.b * p.a * p.s * p.s;
  return countProduct(p.tokens, p.h, p.q + 2 * p.kv) + // queries, keys and values
         countProduct(p.b * p.a * p.s, p.q / p.a, p.s) + countElementwise(scores) + // scores and their scale
         countElementwise(scores) + countElementwise(scores) +                      // mask and softmax
         countProduct(p.b * p.a * p.s, p.s, p.q / p.a) + countProduct(p.tokens, p.q, p.h);
}

static OpCount mlpCount(const ModelShape &shape, const Pass &p) {
  OpCount products =
      countProduct(p.tokens, p.h, (shape.gated ? 2 : 1) * p.f) + countProduct(p.tokens, p.f, p.h);
  double passes = shape.gated ? 2 : 1; // the activation function, and its product with the other half
  return products + countElementwise(passes * p.tokens * p.f);
}

std::vector<ModuleProfile> profileModel(const ModelShape &shape, int64_t batch) {
  Pass p(shape, batch);
  double L = static_cast<double>(shape.layers), norm = (shape.rmsNorm ? 1 : 2) * p.h;
  double attentionParameters = 2 * p.h * p.q + 2 * p.h * p.kv + (shape.biases ? p.q + p.h + 2 * p.kv : 0);
  double mlpParameters = static_cast<double>(shape.layerParameters()) - attentionParameters - 2 * norm;
  OpCount attention = attentionCount(p), mlp = mlpCount(shape, p), oneNorm = countNorm(p.tokens * p.h, true);
  OpCount layer = attention + mlp + oneNorm + oneNorm + countElementwise(2 * p.tokens * p.h); // two residuals
  OpCount layers = {L * layer.flops, L * layer.macs}, head = countProduct(p.tokens, p.h, p.V);
  OpCount positions = shape.learnedPositions ? countElementwise(p.tokens * p.h) : OpCount{};
  return {{"model", 0, static_cast<double>(shape.parameters()), positions + layers + oneNorm + head},
          {"embedding", 1, static_cast<double>(shape.embeddingParameters()), positions},
          {"layers", 1, L * static_cast<double>(shape.layerParameters()), layers},
          {"layer", 2, static_cast<double>(shape.layerParameters()), layer},
          {"attention", 3, attentionParameters, attention},
          {"mlp", 3, mlpParameters, mlp},
          {"norms", 3, 2 * norm, oneNorm + oneNorm},
          {"last norm", 1, norm, oneNorm},
          {"head", 1, shape.tied ? 0 : p.V * p.h, head}};
}

} // namespace ds::cost
