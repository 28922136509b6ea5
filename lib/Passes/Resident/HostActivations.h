//===- HostActivations.h - Keeps on the host what backward reads later -------------===//
#ifndef DS_LIB_PASSES_RESIDENT_HOSTACTIVATIONS_H
#define DS_LIB_PASSES_RESIDENT_HOSTACTIVATIONS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Lets all that comes behind forward in `func` read copies of `values`: each is stored on the host behind
/// its last reader in forward, and loaded once, before its first reader behind that. Values are none of
/// views; views that forward makes of them are recomputed of the copy.
void keepOnHost(func::FuncOp func, const DenseSet<Value> &values);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_HOSTACTIVATIONS_H
