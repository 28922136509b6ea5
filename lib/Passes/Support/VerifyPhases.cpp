//===- VerifyPhases.cpp - What the checks of tensor phases share ----------------===//
#include "VerifyPhases.h"

using namespace mlir;
using namespace mlir::ds;

StateOp mlir::ds::lookupState(func::FuncOp func, const SymbolTable &symbols, FlatSymbolRefAttr name,
                              Type type, const Twine &what) {
  auto state = symbols.lookup<StateOp>(name.getValue());
  if (!state) {
    func.emitOpError("expects ") << what << " to hold a declared state, but got " << name;
    return {};
  }
  auto stored = dyn_cast<StoredType>(type);
  bool isStored = stored && stored.getSpace() == state.getHome();
  if (state.getLocalType() != (isStored ? Type(stored.getTensor()) : type)) {
    InFlightDiagnostic error = func.emitOpError("expects ")
                               << what << " of type " << state.getLocalType() << ", but got " << type;
    error.attachNote(state.getLoc()) << "state " << name << " is declared here";
    return {};
  }
  return state;
}

LogicalResult mlir::ds::verifyArguments(func::FuncOp func, const SymbolTable &symbols) {
  DenseMap<StateOp, unsigned> seen;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(index, DsDialect::kStateAttr);
    bool isInput = static_cast<bool>(func.getArgAttrOfType<StringAttr>(index, DsDialect::kInputAttr));
    if (isInput == static_cast<bool>(name))
      return func.emitOpError("expects argument ")
             << index << " to be either an input or a state, but got " << (isInput ? "both" : "neither");
    if (!name)
      continue;
    Type type = func.getArgument(index).getType();
    StateOp state = lookupState(func, symbols, name, type, "argument " + Twine(index));
    if (!state)
      return failure();
    auto [entry, isNew] = seen.try_emplace(state, index);
    if (!isNew)
      return func.emitOpError("expects one argument for state ")
             << name << ", but got arguments " << entry->second << " and " << index;
  }
  return success();
}

LogicalResult mlir::ds::verifyTensorPhase(func::FuncOp func) {
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (isa<StoredType>(type))
        continue;
      if (!tensor || !tensor.hasStaticShape())
        return op->emitOpError("expects results that are tensors of static shape, but got ") << type;
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
