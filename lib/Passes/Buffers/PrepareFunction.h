//===- PrepareFunction.h - What is put in order before tensors become buffers --------===//
//
// Three small steps ahead of the walk, each of which looks at the whole function: regions of the host
// dissolve, constants are made where they are read, and the tensors are found that are a parameter's
// gradient. A constant that two concatenations read becomes two: each is made in the part of the
// concatenation that it is, so that the 4 KiB of zeros that pad two tensors are not made once and copied
// twice.
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

/// Makes a constant that several ops read in memory for each of them: in the place where it is wanted.
void privatizeConstants(func::FuncOp func);

/// The tensors that are a parameter's gradient, or summed up over ranks for the update.
DenseSet<Value> findGradients(func::FuncOp func, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_PREPAREFUNCTION_H
