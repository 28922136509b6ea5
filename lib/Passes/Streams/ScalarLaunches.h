//===- ScalarLaunches.h - One launch for the scalars of a step ------------------===//
//
// The clipping factor, the step's number, the corrections of an optimizer and whether it is skipped are
// kernels of one thread that read and write single numbers: on a GPU each takes as long as its launch. Those
// that follow one another become one kernel, which loads all it reads before it stores anything.
//
// Example: the norm's root, the clipping factor, the next step's number and two corrections are five
// launches; on a GPU that takes 4 microseconds for each, 20 in all, and 4 as one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_SCALARLAUNCHES_H
#define DS_LIB_PASSES_STREAMS_SCALARLAUNCHES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Joins launches of kernels over scalars alone, of one work, that are commands one after another. A launch
/// that reads nothing comes right before the first command that has to do with what it writes.
void joinScalarLaunches(func::FuncOp func, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_SCALARLAUNCHES_H
