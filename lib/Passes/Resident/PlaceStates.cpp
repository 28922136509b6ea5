//===- PlaceStates.cpp - Reads and writes states where they live --------------------===//
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/ADT/SetVector.h"

#include <map>

namespace mlir::ds {
#define GEN_PASS_DEF_PLACESTATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Ops of one group share a load: forward, backward, update, and what only hands the state on.
static unsigned groupOf(Operation *reader) {
  std::optional<Work> work = getWork(reader);
  if (!work)
    return 3;
  return isBefore(*work, Work::Recompute) ? 0 : isBefore(*work, Work::Update) ? 1 : 2;
}

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

/// `stored` in the space of `type`, to which it is moved right before `before`, for what `user` does.
static Value moveTo(Value stored, StoredType type, Operation *before, Operation *user) {
  if (stored.getType() == type)
    return stored;
  WorkListener listener(user);
  OpBuilder builder(before, &listener);
  return builder.create<MoveOp>(stored.getLoc(), type, stored);
}

/// Replaces `store`, of what is `stored` somewhere already.
static void replaceStore(StoreOp store, Value stored) {
  if (!store->use_empty()) {
    auto isBefore = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
    Operation *first = *llvm::min_element(store->getUsers(), isBefore);
    store.getResult().replaceAllUsesWith(moveTo(stored, store.getResult().getType(), first, store));
  }
  store.erase();
}

/// Puts one load before the first of `readers`.
static void loadFor(BlockArgument argument, RankedTensorType tensor, ArrayRef<Operation *> readers) {
  WorkListener listener(readers.front());
  OpBuilder builder(readers.front(), &listener);
  auto load = builder.create<LoadOp>(argument.getLoc(), tensor, argument);
  for (Operation *reader : readers)
    reader->replaceUsesOfWith(argument, load);
}

/// Stores of `argument` are `argument`, moved where they ask for another space; all others read loads, which
/// do not outlive what they are for: those of forward, of backward and of the update have one each, and a
/// gather has its own.
void FunctionPlacer::loadArgument(BlockArgument argument) {
  StoredType stored = storedAs(func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr), argument);
  if (!stored)
    return;
  RankedTensorType tensor = stored.getTensor();
  SmallVector<StoreOp> stores;
  for (Operation *user : argument.getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      stores.push_back(store);
  argument.setType(stored);
  for (StoreOp store : stores)
    replaceStore(store, argument);
  llvm::SetVector<Operation *> readers(argument.user_begin(), argument.user_end());
  std::map<unsigned, SmallVector<Operation *>> groups;
  for (Operation *reader : readers)
    if (isa<AllGatherOp>(reader))
      loadFor(argument, tensor, reader);
    else if (!isa<HostOp, MoveOp>(reader))
      groups[groupOf(reader)].push_back(reader);
  for (auto &[group, members] : groups) {
    llvm::sort(members, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    loadFor(argument, tensor, members);
  }
}

/// A state that leaves as it came is not brought to the device for that.
void FunctionPlacer::storeResult(OpOperand &result) {
  StoredType stored =
      storedAs(func.getResultAttr(result.getOperandNumber(), DsDialect::kStateAttr), result.get());
  if (!stored)
    return;
  if (auto load = result.get().getDefiningOp<LoadOp>()) {
    result.set(moveTo(load.getStored(), stored, load, load));
    if (load->use_empty())
      load.erase();
    return;
  }
  WorkListener listener(result.get().getDefiningOp());
  OpBuilder builder(func.getContext(), &listener);
  builder.setInsertionPointAfterValue(result.get()); // so that what is stored can be given up
  result.set(builder.create<StoreOp>(result.get().getLoc(), stored, result.get()));
}

/// What was loaded to be stored was there, and what nobody reads was not to be loaded.
static void foldTransfers(Block &block) {
  for (StoreOp store : llvm::make_early_inc_range(block.getOps<StoreOp>()))
    if (auto load = store.getValue().getDefiningOp<LoadOp>())
      replaceStore(store, load.getStored());
  for (LoadOp load : llvm::make_early_inc_range(block.getOps<LoadOp>()))
    if (load->use_empty())
      load.erase();
}

void FunctionPlacer::run() {
  Block &block = func.getBody().front();
  for (BlockArgument argument : block.getArguments())
    loadArgument(argument);
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    storeResult(result);
  foldTransfers(block);
  func.setFunctionType(FunctionType::get(func.getContext(), block.getArgumentTypes(),
                                         block.getTerminator()->getOperandTypes()));
}

namespace {
struct PlaceStates : mlir::ds::impl::PlaceStatesBase<PlaceStates> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Fused)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        FunctionPlacer(func, symbols).run();
  }
};
} // namespace
