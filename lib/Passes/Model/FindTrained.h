//===- FindTrained.h - Which parameter a value depends on -----------------------===//
#ifndef DS_LIB_PASSES_MODEL_FINDTRAINED_H
#define DS_LIB_PASSES_MODEL_FINDTRAINED_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// The first trainable parameter, by argument of `func`, that has part in `value`; null where none has.
StateOp findTrained(func::FuncOp func, const SymbolTable &symbols, Value value);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_FINDTRAINED_H
