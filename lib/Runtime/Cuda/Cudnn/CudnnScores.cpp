//===- CudnnScores.cpp - What becomes of scores by where they stand ----------------===//
#include "CudnnScores.h"

namespace ds::rt::cuda {

using Tensor = CudnnGraph::Tensor;

namespace {

/// The number of each element of x along an axis.
Tensor index(CudnnGraph &graph, const Tensor &x, int64_t axis) {
  const Tensor to = graph.value(x.sizes, CUDNN_DATA_INT32);
  graph.add({.mode = CUDNN_POINTWISE_GEN_INDEX, .type = CUDNN_DATA_INT32, .to = to, .x = x, .axis = axis});
  return to;
}

/// What makes two i32 of two.
Tensor combine(CudnnGraph &graph, cudnnPointwiseMode_t mode, const Tensor &x, const Tensor &y) {
  const Tensor to = graph.value(x.sizes, CUDNN_DATA_INT32);
  graph.add({.mode = mode, .type = CUDNN_DATA_INT32, .to = to, .x = x, .y = &y});
  return to;
}

/// x where the comparison of two numbers holds, else what `otherwise` brings.
Tensor keepWhere(CudnnGraph &graph, cudnnPointwiseMode_t comparison, const Tensor &first,
                 const Tensor &second, const Tensor &x, const Tensor &otherwise) {
  const Tensor holds = graph.value(x.sizes, CUDNN_DATA_BOOLEAN), to = graph.value(x.sizes);
  graph.add({.mode = comparison, .type = CUDNN_DATA_BOOLEAN, .to = holds, .x = first, .y = &second});
  graph.add({.mode = CUDNN_POINTWISE_BINARY_SELECT,
             .type = CUDNN_DATA_FLOAT,
             .to = to,
             .x = x,
             .y = &otherwise,
             .condition = &holds});
  return to;
}

} // namespace

CudnnGraph::Tensor keepLower(CudnnGraph &graph, const Tensor &x, const Tensor &otherwise,
                             const Tensor *shift) {
  const Tensor row = index(graph, x, 2), column = index(graph, x, 3);
  return keepWhere(graph, CUDNN_POINTWISE_CMP_GE,
                   shift ? combine(graph, CUDNN_POINTWISE_ADD, row, *shift) : row, column, x, otherwise);
}

CudnnGraph::Tensor keepNear(CudnnGraph &graph, const Tensor &x, const Tensor &otherwise,
                            const Tensor &reach) {
  const Tensor row = index(graph, x, 2), column = index(graph, x, 3);
  return keepWhere(graph, CUDNN_POINTWISE_CMP_GT, combine(graph, CUDNN_POINTWISE_ADD, column, reach), row, x,
                   otherwise);
}

CudnnGraph::Tensor addSlopes(CudnnGraph &graph, const Tensor &x, const Tensor &slopes) {
  const Tensor row = index(graph, x, 2), column = index(graph, x, 3);
  const Tensor distance = combine(graph, CUDNN_POINTWISE_SUB, column, row);
  const Tensor sloped = graph.apply(CUDNN_POINTWISE_MUL, distance, &slopes);
  return graph.apply(CUDNN_POINTWISE_ADD, x, &sloped);
}

} // namespace ds::rt::cuda
