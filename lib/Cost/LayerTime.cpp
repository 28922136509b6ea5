//===- LayerTime.cpp - One transformer layer of one micro-batch ----------------------===//
//
// Products by the table of achieved rates; everything else by passes over memory, with the fusions that all
// frameworks of the day have (bias with GELU; bias, dropout and residual; scale, mask and softmax). A
// backward product has the size of its forward one, twice.
//
//===---------------------------------------------------------------------------===//
#include "LayerTime.h"

#include "ds/Cost/RowPitch.h"

#include <algorithm>
#include <cmath>

namespace ds::cost {

namespace {
/// The sizes of one rank's part, as doubles.
struct Part {
  Part(const ModelShape &shape, const ParallelPlan &plan)
      : t(static_cast<double>(plan.tp)), sp(static_cast<double>(plan.sp)),
        b(static_cast<double>(plan.microBatch)), s(static_cast<double>(shape.seq)),
        h(static_cast<double>(shape.hidden)), a(static_cast<double>(shape.heads)),
        q(static_cast<double>(shape.queryWidth())), kv(static_cast<double>(shape.kvWidth())),
        f(static_cast<double>(shape.ffnWidth())), tokens(b * s / sp),
        bytes(static_cast<double>(bytesOf(plan.dtype))), flat(tokens * h * bytes),
        between(plan.shardSequence ? t : 1) {}

  double t, sp, b, s, h, a, q, kv, f;
  double tokens;  ///< of this rank
  double bytes;   ///< of an element
  double flat;    ///< bytes of one tensor [tokens, h]
  double between; ///< ranks that split what lies between the products
};
} // namespace

/// Whether rows of so many elements of 16 bits begin at no multiple of 16 bytes.
static bool isUnaligned(double row) { return std::fmod(row * 2, static_cast<double>(kRowUnit)) != 0; }

/// A product of a batch of matrices [m, k] and [k, n] without gaps between rows.
static Matmul product(double m, double n, double k, double batch = 1) {
  const bool isResultUnaligned = isUnaligned(n);
  return {.m = m,
          .n = n,
          .k = k,
          .batch = batch,
          .isUnaligned = isResultUnaligned || isUnaligned(k),
          .isResultUnaligned = isResultUnaligned};
}

/// The four products with weights.
static double weightProducts(const ModelShape &shape, const Part &p, const Rates &rates, DType dtype) {
  double up = (shape.gated ? 2 : 1) * p.f;
  double attention = rates.matmulSeconds(product(p.tokens, (p.q + 2 * p.kv) / p.t, p.h), dtype) +
                     rates.matmulSeconds(product(p.tokens, p.h, p.q / p.t), dtype);
  // Other weights than those of the sizes take their share of the time.
  attention *= static_cast<double>(shape.attentionProducts()) / (2 * p.h * (p.q + p.kv));
  return attention + rates.matmulSeconds(product(p.tokens, up / p.t, p.h), dtype) +
         rates.matmulSeconds(product(p.tokens, p.h, p.f / p.t), dtype);
}

/// Scores and their product with the values, or their gradients, in the mean of all layers. Fused, the scores
/// never leave the chip, and what is masked or outside of a window is not computed; else all of them are
/// stored and computed.
static double attentionProducts(const ModelShape &shape, const Part &p, const ParallelPlan &plan,
                                const Rates &rates, DType dtype, bool isGradient) {
  double heads = p.b * p.a / (p.t * p.sp), width = p.q / p.a;
  // Queries, keys, values and result; backward the result's gradient as well, and three gradients written.
  double tensors = isGradient ? 8 : 4;
  if (plan.flashAttention) {
    rt::AttentionWork work{.heads = heads,
                           .queries = p.s,
                           .keys = p.s,
                           .width = width,
                           .isGradient = isGradient,
                           .isFast = plan.fastAttention,
                           .drops = shape.dropsAttention};
    rt::AttentionWork narrow = work;
    narrow.window = static_cast<double>(shape.window);
    auto seconds = [&](const rt::AttentionWork &of) {
      return rates.attentionSeconds(of, tensors * heads * p.s * width * static_cast<double>(bytesOf(dtype)),
                                    dtype);
    };
    double share = shape.windowShare();
    return (1 - share) * seconds(work) + share * seconds(narrow);
  }
  double forward = rates.matmulSeconds(product(p.s, p.s, width, heads), dtype) +
                   rates.matmulSeconds(product(p.s, width, p.s, heads), dtype);
  return isGradient ? 2 * forward : forward;
}

/// Passes over the scores: `tensors` times their bytes.
static double scorePasses(const Part &p, const ParallelPlan &plan, const Rates &rates, double tensors) {
  if (plan.flashAttention)
    return 0;
  return 2 * rates.memorySeconds(tensors / 2 * p.b * p.a * p.s * p.s * p.bytes / (p.t * p.sp));
}

/// Norms, biases, activation function, dropout and residual, in tensors [tokens, h] read or written: forward.
static double forwardPasses(const ModelShape &shape, const Part &p, const Rates &rates) {
  double add = shape.dropout ? 3.5 : 3; // two operands and the result; the mask is a byte
  double activation = shape.gated ? 3 : 2;
  return 2 * rates.memorySeconds(2 * p.flat / p.between) + 2 * rates.memorySeconds(add * p.flat / p.between) +
         rates.memorySeconds(6 * p.flat / p.t) + rates.memorySeconds(activation * p.flat * p.f / p.h / p.t);
}

/// The same, backward: norms read their input and gradient twice, residuals add gradients.
static double backwardPasses(const ModelShape &shape, const Part &p, const Rates &rates) {
  double add = (shape.dropout ? 2.5 : 2) + 3;
  double activation = shape.gated ? 5 : 3;
  return 2 * rates.memorySeconds(5 * p.flat / p.between) + 2 * rates.memorySeconds(add * p.flat / p.between) +
         rates.memorySeconds(3 * p.flat / p.t) + rates.memorySeconds(activation * p.flat * p.f / p.h / p.t);
}

/// Exchanges of one pass: two all-reduces of tensor parallelism (or a gather and a scatter in place of each),
/// four all-to-alls around attention when ranks share a sequence.
static double exchange(const Part &p, const ParallelPlan &plan, const Rates &rates) {
  double tensor = 0;
  if (plan.tp > 1 && plan.shardSequence)
    tensor = 2 * (rates.collectiveSeconds(Collective::AllGather, p.flat / p.t, plan.tp) +
                  rates.collectiveSeconds(Collective::ReduceScatter, p.flat / p.t, plan.tp));
  else if (plan.tp > 1)
    tensor = 2 * rates.collectiveSeconds(Collective::AllReduce, p.flat, plan.tp);
  Group sequence = rates.group(plan.sp, plan.tp);
  return tensor + 4 * rates.collectiveSeconds(Collective::AllToAll, p.flat / p.t, sequence);
}

LayerSeconds layerSeconds(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  Part p(shape, plan);
  double products = weightProducts(shape, p, rates, plan.dtype);
  double attention = attentionProducts(shape, p, plan, rates, plan.dtype, /*isGradient=*/false);
  // Without room for cuDNN's workspace, the runtime's own kernels compute the gradient in fp32.
  bool isOwn = plan.flashAttention && estimateMemory(shape, plan, rates.cluster()).lacksWorkspace;
  double gradient =
      attentionProducts(shape, p, plan, rates, isOwn ? DType::F32 : plan.dtype, /*isGradient=*/true);
  double dropout = shape.dropout ? 2.5 : 0; // read, write and mask, beside softmax's read and write
  double core = attention + scorePasses(p, plan, rates, 2 + dropout);
  LayerSeconds layer;
  layer.forward = products + core + forwardPasses(shape, p, rates);
  layer.backward = 2 * products + gradient + scorePasses(p, plan, rates, shape.dropout ? 5.5 : 3) +
                   backwardPasses(shape, p, rates);
  layer.forwardExchange = exchange(p, plan, rates);
  // Half of the backward's exchange can run beside the products of the weights' gradients.
  double hidden = plan.overlapTensor ? std::min(layer.forwardExchange / 2, products) : 0;
  layer.backwardExchange = layer.forwardExchange - hidden;
  if (plan.recompute == Recompute::Full) {
    layer.recompute = layer.forward;
    layer.backwardExchange += layer.forwardExchange;
  } else if (plan.recompute == Recompute::Selective && !plan.flashAttention) {
    layer.recompute = core;
  }
  return layer;
}

double logitSeconds(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  Part p(shape, plan);
  double columns = static_cast<double>(shape.vocab) / p.t;
  // Three products: of the gradients the logits are an operand. The loss reads and writes fp32 logits three
  // times. Rows of logits lie apart where that helps: only products and the loss see them.
  Matmul logits = product(p.tokens, columns, p.h);
  const double row = std::ceil(columns); // of the rank that has most
  logits.isResultUnaligned = isUnaligned(row) && !rowPitch(static_cast<int64_t>(row), 2);
  logits.isUnaligned = logits.isResultUnaligned || isUnaligned(p.h);
  Matmul gradient = logits;
  gradient.isResultUnaligned = false;
  // Joined, it reads them as they are and writes the gradient in their place. What a cut of the words needs
  // of other ranks comes between both.
  const double passes =
      plan.joinsLoss && plan.tp == 1
          ? rates.functionSeconds("cross_entropy_with_gradient", p.tokens * columns * 2 * p.bytes)
          : rates.memorySeconds(p.tokens * columns * (p.bytes + 24));
  return rates.matmulSeconds(logits, plan.dtype) + 2 * rates.matmulSeconds(gradient, plan.dtype) + passes;
}

} // namespace ds::cost
