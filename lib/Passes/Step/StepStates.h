//===- StepStates.h - The states a step adds to the model's -----------------------===//
#ifndef DS_LIB_PASSES_STEP_STEPSTATES_H
#define DS_LIB_PASSES_STEP_STEPSTATES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Finds states by name, and declares those that are not there yet.
class StepStates {
public:
  explicit StepStates(ModuleOp module) : symbols(module), builder(module.getContext()) {
    for (StateOp state : module.getOps<StateOp>())
      last = state;
  }

  StateOp lookup(StringRef name) { return symbols.lookup<StateOp>(name); }
  /// The state of that name, declared after the last one where it is not there yet; starts as `start`.
  StateOp declare(const Twine &name, Role role, StringAttr slot, StateOp owner, RankedTensorType type,
                  double start = 0);
  StateOp scalar(StringRef name, Type element, double start = 0) {
    return declare(name, Role::Scalar, StringAttr(), StateOp(), RankedTensorType::get({}, element), start);
  }
  /// What belongs to `parameter` as its `slot`: "<parameter>.<slot>", of its shape.
  StateOp owned(StateOp parameter, StringRef slot, Role role, Type element, double start = 0) {
    return declare(parameter.getSymName() + "." + slot, role, builder.getStringAttr(slot), parameter,
                   parameter.getTensorType().clone(element), start);
  }

private:
  SymbolTable symbols;
  OpBuilder builder;
  StateOp last; ///< of the module
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STEP_STEPSTATES_H
