//===- FoldAccumulators.h - Sums formed where they are made ---------------------===//
#ifndef DS_PASSES_FOLDACCUMULATORS_H
#define DS_PASSES_FOLDACCUMULATORS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::ds {

/// add(matmul(a, b), c) -> matmul(a, b) into c, and the same for embedding_grad, where nothing else reads the
/// product and c is there before it. An accumulator that is taken already passes the sum on to what made it.
void populateFoldAccumulatorPatterns(RewritePatternSet &patterns);

} // namespace mlir::ds

#endif // DS_PASSES_FOLDACCUMULATORS_H
