//===- DescribeSharing.h - How ranks share layers, for reports --------------------===//
#ifndef DS_LIB_PASSES_SHARD_DESCRIBESHARING_H
#define DS_LIB_PASSES_SHARD_DESCRIBESHARING_H

#include "TensorPlacement.h"

#include "ds/Dialect/Decisions.h"

namespace mlir::ds {

/// What `placement` does with the parameters and the work of a segment that is not rewritten yet. `allowed`
/// is what the configuration leaves of some parameters.
SharedLayers describeSharing(const SegmentStates &segment, const TensorCuts &cuts,
                             const TensorPlacement &placement, const SettledStates &settled,
                             const DenseMap<StringAttr, AllowedCuts> &allowed, int64_t ranks);

/// The exchanges along `axes` of a segment that has been rewritten.
std::vector<SharedExchange> describeExchanges(const SegmentStates &segment, AxesAttr axes);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_DESCRIBESHARING_H
