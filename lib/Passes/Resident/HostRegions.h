//===- HostRegions.h - Which ops that run on the host do so together ------------------===//
//
// Each region becomes one op that reads all before it gives anything, so that two parts of one may not wait
// for something between them: a gradient is added up, then its norm is formed with all others, and only then
// is it used. Idea: an op's level counts how often the way to it changes between tensors on the host, scalars
// on the host and the device. Ops of one level and kind cannot wait for each other through anything else; of
// the tensors' those that are tied by a tensor are a region, so that the update of one bucket need not wait
// for that of another.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_HOSTREGIONS_H
#define DS_LIB_PASSES_RESIDENT_HOSTREGIONS_H

#include "HostPlacement.h"

namespace mlir::ds {

/// The ops of `block` that `placement` has on the host, by region, each in block order.
SmallVector<SmallVector<Operation *>> findHostRegions(Block &block, const HostPlacement &placement);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_HOSTREGIONS_H
