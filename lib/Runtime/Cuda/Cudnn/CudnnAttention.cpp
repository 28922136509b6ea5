//===- CudnnAttention.cpp - Attention as graphs that cuDNN has engines for ----------===//
#include "CudnnAttention.h"

#include "CudnnScores.h"

#include <optional>

namespace ds::rt::cuda {
namespace {

using Sizes = CudnnGraph::Sizes;
using Tensor = CudnnGraph::Tensor;

/// The parts of both graphs, with names for sizes: rows are queries, columns keys.
class Builder {
public:
  Builder(const Cudnn &cudnn, const AttentionShape &s)
      : result{CudnnGraph(cudnn), {}}, graph(result.graph),
        shape(s), queries{s.batch, s.heads(), s.call.queries, s.call.size}, keys{s.batch, s.groups,
                                                                                 s.call.keys, s.call.size},
        scores{s.batch, s.heads(), s.call.queries, s.call.keys}, row{s.batch, s.heads(), s.call.queries, 1} {}

  void forward();
  void backward();
  Result<NamedGraph> finish() {
    Status status = graph.finish();
    return status ? Result<NamedGraph>(std::move(result)) : status.error();
  }

private:
  Tensor named(AttentionTensor name, const Tensor &tensor) {
    result.tensors.emplace_back(static_cast<int>(name), tensor.id);
    return tensor;
  }
  Tensor scalar(AttentionTensor name) { return named(name, graph.scalar()); }
  Tensor memory(AttentionTensor name, const Heads &heads, const Sizes &sizes) {
    const Sizes strides = {heads.batchStride, heads.headStride, heads.rowStride, 1};
    return named(name, graph.memory(sizes, strides, shape.type));
  }
  /// The same memory with the last two dimensions changed over.
  Tensor transposed(AttentionTensor name, const Heads &heads, const Sizes &sizes) {
    const Sizes strides = {heads.batchStride, heads.headStride, 1, heads.rowStride};
    return named(name, graph.memory({sizes[0], sizes[1], sizes[3], sizes[2]}, strides, shape.type));
  }
  Tensor rows(AttentionTensor name, const Sizes &strides) {
    return named(name, graph.memory(row, strides, CUDNN_DATA_FLOAT));
  }
  /// Of a block the rows of one head do not follow those of the head before.
  Tensor lse() {
    const int64_t perHead = shape.call.lseStrides[1];
    return rows(AttentionTensor::Lse, {row[1] * perHead, perHead, 1, 1});
  }
  Tensor mask();
  Tensor scaledScores(const Tensor &q, const Tensor &kTransposed, const Tensor &scale);
  bool drops() const { return shape.call.generator != nullptr; }
  Tensor capped(const Tensor &x);
  Tensor multiply(const Tensor &x, const Tensor &y) { return graph.apply(CUDNN_POINTWISE_MUL, x, &y); }
  Tensor visible(const Tensor &x);
  void addDropout();
  Tensor dotOfRows(const Tensor &dout, const Tensor &out);
  void multiplyByColumns(const Tensor &x, const Tensor &y, const Tensor &to);

  NamedGraph result;
  CudnnGraph &graph;
  const AttentionShape &shape;
  const Sizes queries, keys, scores, row;
  std::optional<Tensor> uncapped; ///< scores over their cap, where there is one
  std::optional<Tensor> kept;     ///< 1 or 0 for each probability, where some are dropped
  std::optional<Tensor> keptFactor;
};

/// The mask, of size 1 where it repeats.
Tensor Builder::mask() {
  Sizes sizes = {1, 1, 1, scores[3]}, strides = {0, 0, 0, 1};
  for (size_t d = 3; d-- > 0;) {
    const int64_t stride = shape.call.maskStrides[d];
    sizes[d] = stride == 0 ? 1 : scores[d];
    strides[d] = stride == 0 ? sizes[d + 1] * strides[d + 1] : stride;
  }
  return named(AttentionTensor::Mask, graph.memory(sizes, strides, CUDNN_DATA_FLOAT));
}

/// cap * tanh(x / cap), where there is a cap.
Tensor Builder::capped(const Tensor &x) {
  if (shape.call.cap == 0)
    return x;
  const Tensor cap = scalar(AttentionTensor::Cap);
  uncapped = graph.apply(CUDNN_POINTWISE_DIV, x, &cap);
  return graph.apply(CUDNN_POINTWISE_MUL, graph.apply(CUDNN_POINTWISE_TANH_FWD, *uncapped), &cap);
}

/// q k^T, scaled and capped, and the mask and the slopes added.
Tensor Builder::scaledScores(const Tensor &q, const Tensor &kTransposed, const Tensor &scale) {
  const Tensor product = graph.value(scores);
  graph.matmul(q, kTransposed, product);
  Tensor x = capped(graph.apply(CUDNN_POINTWISE_MUL, product, &scale));
  if (shape.masked) {
    const Tensor added = mask();
    x = graph.apply(CUDNN_POINTWISE_ADD, x, &added);
  }
  if (!shape.call.slopes)
    return x;
  const Sizes sizes = {1, scores[1], 1, 1};
  constexpr int64_t kAlignment = sizeof(float); // of the first head of a piece
  return addSlopes(graph, x,
                   named(AttentionTensor::Slopes,
                         graph.memory(sizes, packedStrides(sizes), CUDNN_DATA_FLOAT, kAlignment)));
}

/// x where a query sees the key. The last query stands at the last key.
Tensor Builder::visible(const Tensor &x) {
  if (!shape.call.causal && !shape.hasWindow())
    return x;
  const Tensor hidden = scalar(AttentionTensor::MinusInfinity);
  Tensor seen = x;
  if (shape.call.causal && shape.call.queries == shape.call.keys) {
    seen = keepLower(graph, x, hidden);
  } else {
    const Tensor shift = named(AttentionTensor::Shift, graph.scalar(CUDNN_DATA_INT32));
    seen = keepLower(graph, x, hidden, &shift);
  }
  return shape.hasWindow()
             ? keepNear(graph, seen, hidden, named(AttentionTensor::Reach, graph.scalar(CUDNN_DATA_INT32)))
             : seen;
}

/// Names what dropout needs.
void Builder::addDropout() {
  if (!drops())
    return;
  kept = named(AttentionTensor::Kept, graph.memory(scores, packedStrides(scores), shape.type));
  keptFactor = scalar(AttentionTensor::KeptFactor);
}

void Builder::forward() {
  using enum AttentionTensor;
  addDropout();
  const AttentionCall &call = shape.call;
  const Tensor q = memory(Q, call.q, queries), kTransposed = transposed(K, call.k, keys);
  const Tensor x = visible(scaledScores(q, kTransposed, scalar(Scale)));
  const Tensor top = graph.value(row), total = graph.value(row);
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, x, top);
  const Tensor exponentials = graph.apply(CUDNN_POINTWISE_EXP, graph.apply(CUDNN_POINTWISE_SUB, x, &top));
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, total);
  const Tensor logarithm = graph.apply(CUDNN_POINTWISE_LOG, total);
  graph.pointwise(CUDNN_POINTWISE_ADD, lse(), top, &logarithm);
  const Tensor probabilities = graph.value(scores, shape.type);
  if (kept)
    graph.pointwise(CUDNN_POINTWISE_MUL, probabilities,
                    multiply(graph.apply(CUDNN_POINTWISE_DIV, exponentials, &total), *kept), &*keptFactor);
  else
    graph.pointwise(CUDNN_POINTWISE_DIV, probabilities, exponentials, &total);
  graph.matmul(probabilities, memory(V, call.v, keys), memory(Out, call.out, queries));
}

/// Sums of dout * out over the elements of a head, in memory: several engines read them. They are over what
/// dropout multiplies by; engines want a product there, with 1 where there is none.
Tensor Builder::dotOfRows(const Tensor &dout, const Tensor &out) {
  const Tensor products = graph.apply(CUDNN_POINTWISE_MUL, dout, &out), sums = graph.value(row);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  const Tensor one = scalar(drops() ? AttentionTensor::KeptShare : AttentionTensor::One),
               dots = rows(AttentionTensor::RowSums, packedStrides(row));
  graph.pointwise(CUDNN_POINTWISE_MUL, dots, sums, &one);
  return dots;
}

/// to = x^T y, summed over the query heads that share a key head.
void Builder::multiplyByColumns(const Tensor &x, const Tensor &y, const Tensor &to) {
  const Sizes sizes = {scores[0], scores[1], scores[3], scores[2]};
  const Sizes strides = {scores[1] * scores[2] * scores[3], scores[2] * scores[3], 1, scores[3]};
  const Tensor xTransposed = graph.value(sizes, strides, shape.type);
  graph.reshape(x, xTransposed);
  if (shape.heads() == shape.groups)
    return graph.matmul(xTransposed, y, to);
  const Tensor each = graph.value({keys[0], scores[1], keys[2], keys[3]}, shape.type);
  graph.matmul(xTransposed, y, each);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, each, to);
}

void Builder::backward() {
  using enum AttentionTensor;
  addDropout();
  const AttentionCall &call = shape.call;
  const Tensor q = memory(Q, call.q, queries), out = memory(Out, call.out, queries),
               dout = memory(Dout, call.dout, queries), kTransposed = transposed(K, call.k, keys),
               vTransposed = transposed(V, call.v, keys), scale = scalar(Scale);
  const Tensor dots = dotOfRows(dout, out), logarithms = lse();
  const Tensor logits = graph.apply(CUDNN_POINTWISE_SUB, scaledScores(q, kTransposed, scale), &logarithms);
  const Tensor probabilities = graph.apply(CUDNN_POINTWISE_EXP, visible(logits));
  multiplyByColumns(kept ? multiply(multiply(probabilities, *kept), *keptFactor) : probabilities, dout,
                    memory(Dv, call.dv, keys));

  const Tensor products = graph.value(scores);
  graph.matmul(dout, vTransposed, products);
  const Tensor differences =
      graph.apply(CUDNN_POINTWISE_SUB, kept ? multiply(products, *kept) : products, &dots);
  Tensor gradients = graph.apply(CUDNN_POINTWISE_MUL, differences, &probabilities);
  if (kept)
    gradients = multiply(gradients, *keptFactor);
  if (uncapped)
    gradients = graph.applyBackward(CUDNN_POINTWISE_TANH_BWD, gradients, *uncapped);
  const Tensor dscores = graph.value(scores, shape.type);
  graph.pointwise(CUDNN_POINTWISE_MUL, dscores, gradients, &scale);
  multiplyByColumns(dscores, q, memory(Dk, call.dk, keys));

  const Heads &k = call.k;
  const Tensor kAgain = graph.value(keys, {k.batchStride, k.headStride, k.rowStride, 1}, shape.type);
  graph.reshape(kTransposed, kAgain);
  const Tensor dq = memory(Dq, call.dq, queries);
  if (!shape.fast)
    return graph.matmul(dscores, kAgain, dq);
  const Tensor sums = named(QuerySums, graph.sums(queries));
  graph.matmul(dscores, kAgain, sums);
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq, sums);
}

} // namespace

Result<NamedGraph> describeAttention(const Cudnn &cudnn, const AttentionShape &shape) {
  Builder builder(cudnn, shape);
  shape.gradient ? builder.backward() : builder.forward();
  return builder.finish();
}

} // namespace ds::rt::cuda
