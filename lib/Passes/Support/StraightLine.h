//===- StraightLine.h - Greedy rewriting where there is no control flow ------------===//
#ifndef DS_LIB_PASSES_SUPPORT_STRAIGHTLINE_H
#define DS_LIB_PASSES_SUPPORT_STRAIGHTLINE_H

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::ds {

/// How patterns are applied to functions and regions of one block. The driver erases what dies by itself;
/// MLIR's simplification of regions merges blocks and drops what no block reaches, of which there is none
/// here, and in a function of ten thousands of ops its look for what is live takes as long as the patterns.
inline GreedyRewriteConfig straightLineConfig(RewriterBase::Listener *listener = nullptr) {
  GreedyRewriteConfig config;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled;
  config.listener = listener;
  return config;
}

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_STRAIGHTLINE_H
