//===- VerifyPhases.h - What the checks of tensor phases share ------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_VERIFYPHASES_H
#define DS_LIB_PASSES_SUPPORT_VERIFYPHASES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Verifies that each argument of `func`
/// - is an input or a state, and not both;
/// - if a state, has a declared one's type, and is the only argument of that state.
LogicalResult verifyArguments(func::FuncOp func, const SymbolTable &symbols);

/// Verifies that every op of `func` is on tensors of static shape, stored or not.
LogicalResult verifyTensorPhase(func::FuncOp func);

/// Verifies that each op of the segment `func` says its work, which is of the segment's, and reads nothing
/// that is done later.
LogicalResult verifyWork(func::FuncOp func);

/// Verifies that the functions of `module`
/// - are segments, at most one evaluation for each stage, and that a schedule runs all others;
/// - take and give states as their declarations say, as far as their work may;
/// - hold ops that say their work;
/// - are on tensors of static shape,
/// and that no owner and no bucket has two states of one slot.
LogicalResult verifySegments(ModuleOp module);

/// The state that `name` declares; null, with a diagnostic at `func`, where it does not or not with `type`.
/// `what` names the value ("argument 3").
StateOp lookupState(func::FuncOp func, const SymbolTable &symbols, FlatSymbolRefAttr name, Type type,
                    const Twine &what);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_VERIFYPHASES_H
