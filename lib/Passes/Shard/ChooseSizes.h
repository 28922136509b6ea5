//===- ChooseSizes.h - Sizes of ZeRO that the configuration leaves open -----------===//
#ifndef DS_LIB_PASSES_SHARD_CHOOSESIZES_H
#define DS_LIB_PASSES_SHARD_CHOOSESIZES_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// What the choice rests on.
struct SizeBasis {
  int64_t ranks = 1;
  int64_t parameterBytes = 4, gradientBytes = 4; ///< of an element, as ranks exchange it
  int64_t elements = 0;                          ///< of all parameters
};

/// Share of a link's bandwidth that a bucket's exchange is to reach.
inline constexpr double kWantedShare = 0.9;
/// Parameters that latency alone would keep whole take at most this part of all.
inline constexpr int64_t kWholePart = 64;

/// Gives each size of `options` that is ShardingOptions::kChosen a value. Returns each with its
/// figures.
SmallVector<OpenChoice> chooseSizes(ShardingOptions &options, const SizeBasis &basis,
                                    const ::ds::cost::Rates &rates);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_CHOOSESIZES_H
