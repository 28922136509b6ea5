//===- PlaceStates.cpp - Reads and writes states where they live --------------------===//
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_PLACESTATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Rewrites one function.
class FunctionPlacer {
public:
  FunctionPlacer(func::FuncOp func, const SymbolTable &symbols) : func(func), symbols(symbols) {}
  void run();

private:
  /// As which type `value`, of the state that `name` declares, enters or leaves the function; null where that
  /// is a tensor.
  StoredType storedAs(Attribute name, Value value);
  void loadArgument(BlockArgument argument);
  void storeResult(OpOperand &result);

  func::FuncOp func;
  const SymbolTable &symbols;
};
} // namespace

StoredType FunctionPlacer::storedAs(Attribute name, Value value) {
  auto state = name ? symbols.lookup<StateOp>(cast<FlatSymbolRefAttr>(name).getValue()) : StateOp();
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!state || !tensor || state.getHome() == Space::Device)
    return {};
  return StoredType::get(func.getContext(), tensor, state.getHome());
}

/// One load of `argument`, at its first reader.
void FunctionPlacer::loadArgument(BlockArgument argument) {
  StoredType stored = storedAs(func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr), argument);
  if (!stored)
    return;
  RankedTensorType tensor = stored.getTensor();
  argument.setType(stored);
  Operation *first = nullptr;
  for (Operation *user : argument.getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  if (!first)
    return;
  WorkListener listener(first);
  OpBuilder builder(first, &listener);
  auto load = builder.create<LoadOp>(argument.getLoc(), tensor, argument);
  argument.replaceAllUsesExcept(load.getResult(), load);
}

/// A state that leaves as it came is not brought to the device for that.
void FunctionPlacer::storeResult(OpOperand &result) {
  StoredType stored =
      storedAs(func.getResultAttr(result.getOperandNumber(), DsDialect::kStateAttr), result.get());
  if (!stored)
    return;
  if (auto load = result.get().getDefiningOp<LoadOp>(); load && load.getStored().getType() == stored) {
    result.set(load.getStored());
    if (load->use_empty())
      load.erase();
    return;
  }
  WorkListener listener(result.get().getDefiningOp());
  OpBuilder builder(result.getOwner(), &listener);
  result.set(builder.create<StoreOp>(result.get().getLoc(), stored, result.get()));
}

void FunctionPlacer::run() {
  Block &block = func.getBody().front();
  for (BlockArgument argument : block.getArguments())
    loadArgument(argument);
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    storeResult(result);
  func.setFunctionType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                         block.getTerminator()->getOperandTypes()));
}

namespace {
struct PlaceStates : mlir::ds::impl::PlaceStatesBase<PlaceStates> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        FunctionPlacer(func, symbols).run();
  }
};
} // namespace
