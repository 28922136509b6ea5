//===- FoldAccumulators.h - Sums formed where they are made ---------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_FOLDACCUMULATORS_H
#define DS_LIB_PASSES_SUPPORT_FOLDACCUMULATORS_H

#include "ds/Dialect/Emitter.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::ds {

/// add(matmul(a, b), c) -> matmul(a, b) into c, and the same for embedding_grad, where nothing else reads the
/// product and c is there before it. An accumulator that is taken already passes the sum on to what made it.
void populateFoldAccumulatorPatterns(RewritePatternSet &patterns);

/// `value`, which nothing reads yet, in `element`: a 16-bit product whose sums are f32 anyway is made as f32,
/// of a sum of products that was just rounded from `element` the unrounded one is taken, other values are
/// converted.
Value makeIn(Emitter &emit, Value value, Type element);

/// Forms the sum of each `ds.accumulate` in `root`: inside of the product that makes the gradient, where
/// nothing else reads that.
void lowerAccumulations(Operation *root);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_FOLDACCUMULATORS_H
