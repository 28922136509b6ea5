//===- OffloadUpdates.cpp - Updates states of the host on the host's cores ------------===//
//
// HostPlacement says which ops run there and HostRegions which of them do so together; here each region
// becomes one ds.host, with stores of what it reads and loads of what others read of it. Where one region
// reads what another has made, or a state, the two meet as a store of a load, which folds to nothing
// (ds-place-states).
//
//===---------------------------------------------------------------------------------===//
#include "HostRegions.h"
#include "Support/Exchanges.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_OFFLOADUPDATES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// Moves the ops of one function that run on the host into regions.
class FunctionOffloader {
public:
  FunctionOffloader(func::FuncOp func, const SymbolTable &symbols)
      : func(func), block(func.getBody().front()), placement(func, symbols) {}
  LogicalResult run();

private:
  struct Body {
    std::unique_ptr<Region> region = std::make_unique<Region>();
    IRMapping mapping;
    llvm::SmallSetVector<Value, 8> inputs;
  };
  /// Makes `value` known in `body`: as a copy of the free op that gives it, or as an argument.
  void import(Value value, OpBuilder &builder, Body &body);
  Body makeBody(ArrayRef<Operation *> ops, ArrayRef<Value> outputs);
  void offload(ArrayRef<Operation *> ops);
  /// `value` in the host's memory, for an op of the work that `reader` says.
  Value storeFor(Value value, Operation *reader);
  void eraseUnused();
  void dropPresumptions();

  func::FuncOp func;
  Block &block;
  HostPlacement placement;
  DenseMap<Value, StoreOp> stores;
};
} // namespace

static StoredType onHost(Value value) {
  return StoredType::get(value.getContext(), cast<RankedTensorType>(value.getType()), Space::Host);
}

void FunctionOffloader::import(Value value, OpBuilder &builder, Body &body) {
  if (body.mapping.contains(value))
    return;
  Operation *maker = value.getDefiningOp();
  if (maker && HostPlacement::isFree(maker)) {
    for (Value operand : maker->getOperands())
      import(operand, builder, body);
    clearWork(builder.clone(*maker, body.mapping));
    return;
  }
  body.inputs.insert(value);
  body.mapping.map(value, body.region->front().addArgument(value.getType(), value.getLoc()));
}

FunctionOffloader::Body FunctionOffloader::makeBody(ArrayRef<Operation *> ops, ArrayRef<Value> outputs) {
  Body body;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&body.region->emplaceBlock());
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      import(operand, builder, body);
    clearWork(builder.clone(*op, body.mapping));
  }
  SmallVector<Value> yielded =
      llvm::map_to_vector(outputs, [&](Value output) { return body.mapping.lookup(output); });
  builder.create<YieldOp>(ops.back()->getLoc(), yielded);
  return body;
}

Value FunctionOffloader::storeFor(Value value, Operation *reader) {
  StoreOp &store = stores[value];
  if (!store) {
    OpBuilder builder(func.getContext());
    builder.setInsertionPointAfterValue(value);
    store = builder.create<StoreOp>(value.getLoc(), onHost(value), value);
    if (Operation *maker = value.getDefiningOp())
      copyWork(maker, store);
  }
  // What is there from the start is stored for the first that reads it.
  std::optional<Work> work = getWork(store), wanted = getWork(reader);
  if (!value.getDefiningOp() && wanted && (!work || isBefore(*wanted, *work)))
    setWork(store, *wanted);
  return store.getResult();
}

/// Replaces `ops` by one ds.host in the place of the last; whoever reads earlier is put behind it in the end.
void FunctionOffloader::offload(ArrayRef<Operation *> ops) {
  DenseSet<Operation *> members(ops.begin(), ops.end());
  SmallVector<Value> outputs;
  Operation *latest = ops.front();
  for (Operation *op : ops) {
    bool isRead = false;
    HostPlacement::forEachReader(op->getResult(0),
                                 [&](Operation *reader) { isRead |= !members.contains(reader); });
    if (isRead)
      outputs.push_back(op->getResult(0));
    if (isBefore(*getWork(latest), *getWork(op)))
      latest = op;
  }
  Body body = makeBody(ops, outputs);
  SmallVector<Value> inputs =
      llvm::map_to_vector(body.inputs, [&](Value input) { return storeFor(input, latest); });
  OpBuilder builder(ops.back());
  SmallVector<Type> types = llvm::map_to_vector(outputs, [](Value output) -> Type { return onHost(output); });
  auto host = builder.create<HostOp>(ops.back()->getLoc(), types, inputs);
  host.getBody().takeBody(*body.region);
  copyWork(latest, host);
  for (auto [output, result] : llvm::zip_equal(outputs, host.getResults())) {
    auto load = builder.create<LoadOp>(output.getLoc(), output.getType(), result);
    copyWork(host, load);
    output.replaceAllUsesWith(load);
    stores.erase(output); // of what is there: it folds, but others must find what takes its place
  }
  for (Operation *op : ops)
    op->dropAllReferences();
  for (Operation *op : ops) {
    op->dropAllUses(); // free ops that nobody reads any more
    op->erase();
  }
}

/// Erases the constants and broadcasts whose readers have copies of their own.
void FunctionOffloader::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if ((HostPlacement::isFree(&op) || isa<LoadOp>(op)) && op.use_empty())
      op.erase();
}

/// What only the device reads of what is presumed is the truth.
void FunctionOffloader::dropPresumptions() {
  for (PresumeOp op : llvm::make_early_inc_range(block.getOps<PresumeOp>()))
    if (!placement.isOnHost(op)) {
      op.getResult().replaceAllUsesWith(op.getTruth());
      op.erase();
    }
}

/// What is in `block` before `op`, whatever stands where: who makes what it or its regions read, and, where
/// it meets other stages, what meets them before it (`meetings`, in order).
static SmallVector<Operation *> neededBy(Operation *op, Block &block,
                                         const DenseMap<Operation *, Operation *> &meetings) {
  SmallVector<Operation *> needed;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && maker->getBlock() == &block && maker != op)
        needed.push_back(maker);
  });
  if (Operation *before = meetings.lookup(op))
    needed.push_back(before);
  return needed;
}

/// Sorts `block` so that each op stands behind what it needs and stages meet in the order of `meetings`; ops
/// come forward as far as others need them. Fails where ops need each other.
static LogicalResult sortMeetings(Block &block, ArrayRef<Operation *> meetings) {
  DenseMap<Operation *, Operation *> before;
  for (auto [first, second] : llvm::zip(meetings, meetings.drop_front()))
    before[second] = first;
  DenseSet<Operation *> placed, open;
  SmallVector<Operation *> ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  SmallVector<Operation *> stack;
  for (Operation *root : ops) {
    stack.push_back(root);
    while (!stack.empty()) {
      Operation *op = stack.back();
      const size_t depth = stack.size();
      if (!placed.contains(op))
        for (Operation *needed : neededBy(op, block, before))
          if (!placed.contains(needed))
            stack.push_back(needed);
      if (stack.size() > depth && !open.insert(op).second)
        return op->emitOpError("expects stages to meet before what waits for it");
      if (stack.size() > depth)
        continue;
      stack.pop_back();
      if (placed.insert(op).second)
        op->moveBefore(&block, block.end());
    }
  }
  return success();
}

LogicalResult FunctionOffloader::run() {
  placement.repeatShared();
  dropPresumptions();
  if (placement.empty())
    return success();
  for (ArrayRef<Operation *> ops : findHostRegions(block, placement))
    offload(ops);
  eraseUnused();
  SmallVector<Operation *> meetings;
  for (Operation &op : block)
    if (meetsStages(&op))
      meetings.push_back(&op);
  return meetings.size() < 2 ? success(sortTopologically(&block)) : sortMeetings(block, meetings);
}

namespace {
struct OffloadUpdates : mlir::ds::impl::OffloadUpdatesBase<OffloadUpdates> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Fused)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(FunctionOffloader(func, symbols).run()))
        return signalPassFailure();
  }
};
} // namespace
