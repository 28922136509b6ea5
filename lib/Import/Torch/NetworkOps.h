//===- NetworkOps.h - Writes the ops of layers ------------------------------------===//
//
// One function per op of the dialect: it computes the results' shapes and types, appends one line, and
// returns the named tensor; it trusts its caller where the dialect's verifier would complain.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_NETWORKOPS_H
#define DS_LIB_IMPORT_TORCH_NETWORKOPS_H

#include "Builder.h"

namespace ds::ts {

struct MatmulOptions {
  TensorRef bias, accumulator;
  bool transposeLhs = false, transposeRhs = false;
};
TensorRef emitMatmul(Builder &b, const TensorRef &lhs, const TensorRef &rhs, const MatmulOptions &options);
TensorRef emitSoftmax(Builder &b, const TensorRef &x, int64_t dim, bool log);
TensorRef emitLayerNorm(Builder &b, const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                        int64_t numDims, double epsilon);
TensorRef emitRmsNorm(Builder &b, const TensorRef &x, const TensorRef &weight, int64_t numDims,
                      double epsilon);
TensorRef emitAttention(Builder &b, const TensorRef &query, const TensorRef &key, const TensorRef &value,
                        const TensorRef &mask, bool causal, double scale);
struct ConvWindows {
  Shape stride, padding, dilation;
  int64_t groups = 1;
};
TensorRef emitConv(Builder &b, const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                   const ConvWindows &windows, const Shape &shape);
/// What a convolution with these windows of a result of `shape` makes of the gradient x: a transposed one.
TensorRef emitTransposedConv(Builder &b, const TensorRef &x, const TensorRef &weight,
                             const ConvWindows &windows, const Shape &shape);
struct BatchNorm {
  TensorRef weight, bias;                 ///< may be null
  TensorRef runningMean, runningVariance; ///< may be null; else buffers that the forward updates
  double momentum = 0.1, epsilon = 1e-5;
};
/// By the statistics of the batch; writes the buffers of those that are kept.
TensorRef emitBatchNorm(Builder &b, const TensorRef &x, const BatchNorm &norm);
/// x, through which no gradient passes.
TensorRef emitDetach(Builder &b, const TensorRef &x);
/// Looking up the row `padding` gives it no gradient.
TensorRef emitEmbedding(Builder &b, const TensorRef &table, const TensorRef &ids,
                        std::optional<int64_t> padding = std::nullopt);
/// The sum of the losses of the rows that count, over `denominator`, or their mean where that is null.
TensorRef emitCrossEntropy(Builder &b, const TensorRef &logits, const TensorRef &targets, int64_t ignoreIndex,
                           const TensorRef &denominator);
TensorRef emitDropout(Builder &b, const TensorRef &x, double probability);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_NETWORKOPS_H
