//===- StepStates.cpp - The states a step adds to the model's ---------------------===//
#include "StepStates.h"

using namespace mlir;
using namespace mlir::ds;

StateOp StepStates::declare(const Twine &name, Role role, StringAttr slot, StateOp owner,
                            RankedTensorType type, double start) {
  std::string spelling = name.str();
  if (auto state = symbols.lookup<StateOp>(spelling)) {
    assert(state.getRole() == role && state.getTensorType() == type && "checked before building");
    return state;
  }
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(&symbols.getOp()->getRegion(0).front());
  auto init =
      InitAttr::get(builder.getContext(), start == 0 ? InitKind::Zero : InitKind::Constant, start, 0.0);
  Location loc = owner ? owner.getLoc() : symbols.getOp()->getLoc();
  auto state = builder.create<StateOp>(loc, spelling, role, /*trainable=*/false, /*aliases=*/ArrayAttr(),
                                       owner ? FlatSymbolRefAttr::get(owner) : FlatSymbolRefAttr(), init,
                                       Space::Device, type);
  state.setSlotAttr(slot);
  symbols.insert(state);
  return last = state;
}
