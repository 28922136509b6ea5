//===- TensorSpecs.h - What a configuration says of parameters by their names -----===//
#ifndef DS_LIB_PASSES_SHARD_TENSORSPECS_H
#define DS_LIB_PASSES_SHARD_TENSORSPECS_H

#include "SegmentStates.h"
#include "TensorCuts.h"

#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// Ways to hold a parameter that a configuration leaves.
struct AllowedCuts {
  bool whole = true;
  SmallVector<Cut> cuts;
};

/// What `options.layerSpecs` leaves of the cuts of the segment's parameters, by their names: the first entry
/// that matches counts. Columns and rows are those of the products that read a parameter, however it is
/// stored. Warns of entries that no cut of the graph obeys; such leave everything open.
DenseMap<StringAttr, AllowedCuts> readSpecs(SegmentStates &segment, const TensorCuts &cuts,
                                            const TensorOptions &options);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_TENSORSPECS_H
