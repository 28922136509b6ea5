//===- PrepareFunction.h - What is put in order before tensors become buffers --------===//
//
// Two small steps ahead of the walk, each of which looks at the whole function: regions of the host
// dissolve, and the tensors are found that are a parameter's gradient.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_PREPAREFUNCTION_H
#define DS_LIB_PASSES_BUFFERS_PREPAREFUNCTION_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Puts the ops of regions of the host in the function, with plain tensors where values lay in another space;
/// gives the spaces of those that are not on the device.
DenseMap<Value, Space> dissolveHostRegions(func::FuncOp func);

/// The tensors that are a parameter's gradient, or summed up over ranks for the update.
DenseSet<Value> findGradients(func::FuncOp func, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_PREPAREFUNCTION_H
