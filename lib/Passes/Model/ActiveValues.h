//===- ActiveValues.h - Between which values gradients pass -----------------------===//
#ifndef DS_LIB_PASSES_MODEL_ACTIVEVALUES_H
#define DS_LIB_PASSES_MODEL_ACTIVEVALUES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// The floats of `func`, one block on tensors, that trainable parameters influence, on this stage of a
/// pipeline or on an earlier one.
DenseSet<Value> findActiveValues(func::FuncOp func);

/// The floats of `func` that its first result, or what it sends to be trained, may depend on smoothly.
DenseSet<Value> findNeededValues(func::FuncOp func);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_ACTIVEVALUES_H
