//===- Recomputer.cpp - Recomputes in backward what is not kept ---------------------===//
//
// Cheap ops are copied to where they are read: each kernel has its own, for between two a copy would be a
// value that lives again. What is not cheap is made once, in a ds.recompute before its first reader, together
// with all that it takes and that was not recomputed yet; its results stay for whoever reads them later. A
// recomputation is released by the newest gradient that its first reader has: forward cannot have that.
//
//===---------------------------------------------------------------------------===//
#include "Recomputer.h"

#include "RecomputeRules.h"
#include "SegmentMemory.h"
#include "Support/PostOrder.h"
#include "ds/Dialect/Work.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// True for what an op of forward makes: arguments are there anyway, and constants are no work.
static bool isMadeForward(Value value) { return value.getDefiningOp() && isForward(value.getDefiningOp()); }

/// Whether `op` makes what only backward has.
static bool isGradient(Operation *op) {
  return getWork(op) == Work::Backward && op->getNumResults() > 0 && !isa<CollectiveOpInterface>(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

namespace {
class Recomputer {
public:
  Recomputer(func::FuncOp func, const OpenRegions &open, DenseSet<Value> kept);
  void run();

private:
  void visit(Operation *op);
  bool isToCopy(Value value, OpBuilder &builder);
  Value findCopy(Value value);
  Value copy(Value value, OpBuilder &builder);
  Value findEvent() const;
  bool isCopied(Value value) const;
  void collect(Value value, llvm::SetVector<Operation *> &ops) const;
  SmallVector<Value> fillBody(Block &body, ArrayRef<Operation *> ops, ArrayRef<Value> outputs);
  void recompute(Value value, OpBuilder &builder);
  Value supply(Value value);
  AllGatherOp gatherForBackward(AllGatherOp gather);
  LoadOp loadForBackward(LoadOp load);

  func::FuncOp func;
  const OpenRegions &open;
  const DenseSet<Value> kept;
  DenseMap<Value, Value> copies;        ///< of cheap values, for the reader's command
  DenseMap<Value, Value> recomputed;    ///< of ds.recompute
  DenseMap<Value, AllGatherOp> gathers; ///< argument -> its first gather in backward
  DenseMap<Value, LoadOp> loads;        ///< argument -> its first load in backward
  SmallVector<RecomputeOp> regions;
  Operation *reader = nullptr; ///< the op of backward that is being visited
  Value newest;                ///< the last value that backward has made when the reader's command begins
  Value made;                  ///< the last that it has made so far
};
} // namespace

/// The argument that `value` is, or is loaded from; else `value`.
static Value stateBehind(Value value) {
  auto load = value.getDefiningOp<LoadOp>();
  return load && isa<BlockArgument>(load.getStored()) ? Value(load.getStored()) : value;
}

/// What the gathers of one parameter have in common: its shard, also where `gather` is from a part that was
/// kept of what was gathered from that.
static Value sourceOf(AllGatherOp gather) {
  auto part = gather.getShard().getDefiningOp<LocalShardOp>();
  auto whole = part ? part.getFull().getDefiningOp<AllGatherOp>() : AllGatherOp();
  return stateBehind(whole ? whole.getShard() : gather.getShard());
}

/// Whether `load`, of forward, is of a state: backward loads that again.
static bool isOfState(LoadOp load) { return load && isForward(load) && isa<BlockArgument>(load.getStored()); }

Recomputer::Recomputer(func::FuncOp func, const OpenRegions &open, DenseSet<Value> kept)
    : func(func), open(open), kept(std::move(kept)) {
  for (auto gather : func.getOps<AllGatherOp>())
    if (!isForward(gather) && gather.getCarries() == Payload::Parameter)
      gathers.try_emplace(sourceOf(gather), gather);
  for (auto load : func.getOps<LoadOp>())
    if (getWork(load) == Work::Backward && llvm::none_of(load->getUsers(), llvm::IsaPred<AllGatherOp>))
      loads.try_emplace(load.getStored(), load);
}

/// Takes the results that nobody reads from a recomputation.
static void dropUnread(RecomputeOp op) {
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  SmallVector<Value> yielded;
  SmallVector<Value> results;
  for (auto [value, result] : llvm::zip_equal(yield.getValues(), op.getOutputs()))
    if (!result.use_empty())
      yielded.push_back(value), results.push_back(result);
  if (results.size() == op.getNumResults())
    return;
  OpBuilder builder(op);
  SmallVector<Type> types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
  auto less = builder.create<RecomputeOp>(op.getLoc(), types, op.getKept(), op.getAfter());
  copyWork(op, less);
  less.getBody().takeBody(op.getBody());
  yield.getValuesMutable().assign(yielded);
  for (auto [result, with] : llvm::zip_equal(results, less.getOutputs()))
    result.replaceAllUsesWith(with);
  op.erase();
}

void Recomputer::run() {
  SmallVector<Operation *> ops =
      llvm::map_to_vector(func.getBody().front().without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : ops)
    if (!isForward(op))
      visit(op);
  for (RecomputeOp op : llvm::reverse(regions))
    dropUnread(op);
}

void Recomputer::visit(Operation *op) {
  if (reader && !open.areTogether(reader, op)) {
    newest = made;
    copies.clear();
  }
  reader = op;
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands())
    operand.set(copy(operand.get(), builder));
  if (isGradient(op))
    made = op->getResult(0);
}

/// The newest gradient that the reader's command reads by it, or, where it reads none, that was made before.
Value Recomputer::findEvent() const {
  Value event;
  for (Value operand : reader->getOperands())
    if (Operation *maker = operand.getDefiningOp(); maker && isGradient(maker) &&
                                                    !open.areTogether(maker, reader) &&
                                                    (!event || event.getDefiningOp()->isBeforeInBlock(maker)))
      event = maker->getResult(0);
  return event ? event : newest;
}

/// Whether what reads `value` in backward gets a copy of it.
bool Recomputer::isCopied(Value value) const { return isMadeForward(value) && !kept.contains(value); }

/// Whether `value` is to be copied now. What is not cheap is recomputed instead, and is there then.
bool Recomputer::isToCopy(Value value, OpBuilder &builder) {
  if (!isCopied(value) || recomputed.contains(value) || copies.contains(value))
    return false;
  Operation *op = value.getDefiningOp();
  const bool isCall = !isCheap(op) && formOf(op) != OpForm::View;
  if (isCall)
    recompute(value, builder);
  return !isCall;
}

/// What backward reads instead of `value`.
Value Recomputer::findCopy(Value value) {
  if (auto load = value.getDefiningOp<LoadOp>(); isOfState(load))
    return loadForBackward(load);
  if (!isCopied(value))
    return value;
  Value known = recomputed.lookup(value);
  return known ? known : copies.lookup(value);
}

Value Recomputer::copy(Value value, OpBuilder &builder) {
  visitPostOrder(
      value, [&](Value next) { return isToCopy(next, builder); },
      [&](Value next) {
        Operation *op = next.getDefiningOp();
        IRMapping mapping;
        for (Value operand : op->getOperands())
          mapping.map(operand, findCopy(operand));
        Operation *clone = builder.clone(*op, mapping);
        if (needsWork(clone))
          setWork(clone, Work::Recompute);
        for (auto [original, result] : llvm::zip_equal(op->getResults(), clone->getResults()))
          copies[original] = result;
      });
  return findCopy(value);
}

/// Adds the ops that make `value` of what is there.
void Recomputer::collect(Value value, llvm::SetVector<Operation *> &ops) const {
  auto isMissing = [&](Value next) {
    Operation *op = next.getDefiningOp();
    const bool isConstant = op && op->hasTrait<OpTrait::ConstantLike>();
    return (isConstant || (isCopied(next) && !recomputed.contains(next))) && !ops.contains(op);
  };
  visitPostOrder(value, isMissing, [&](Value next) { ops.insert(next.getDefiningOp()); });
}

/// Puts `op`, and the load that it reads, before the reader where it comes later.
static void bringBefore(Operation *reader, Operation *op) {
  if (!reader->isBeforeInBlock(op))
    return;
  op->moveBefore(reader);
  for (Value operand : op->getOperands())
    if (auto load = operand.getDefiningOp<LoadOp>(); load && op->isBeforeInBlock(load))
      load->moveBefore(op);
}

/// The load of backward that stands for one of forward, before the reader.
LoadOp Recomputer::loadForBackward(LoadOp load) {
  LoadOp &known = loads[load.getStored()];
  if (!known) {
    known = cast<LoadOp>(OpBuilder(reader).clone(*load));
    setWork(known, Work::Recompute);
  }
  bringBefore(reader, known);
  return known;
}

/// The gather of backward that stands for one of forward, before the reader: where a part of that was kept,
/// from there.
AllGatherOp Recomputer::gatherForBackward(AllGatherOp gather) {
  AllGatherOp &known = gathers[sourceOf(gather)];
  if (known) {
    bringBefore(reader, known);
    return known;
  }
  OpBuilder builder(reader);
  Value shard = gather.getShard();
  if (auto load = shard.getDefiningOp<LoadOp>()) {
    Operation *again = builder.clone(*load);
    setWork(again, Work::Backward);
    shard = again->getResult(0);
  }
  known = cast<AllGatherOp>(builder.clone(*gather));
  known.getShardMutable().set(shard);
  if (LocalShardOp part = findPartOf(gather)) {
    known.getShardMutable().set(part);
    known.setAxesAttr(part.getAxes());
  }
  setWork(known, Work::Backward);
  return known;
}

/// What a recomputation reads as `value`, which it does not make itself.
Value Recomputer::supply(Value value) {
  if (Value known = recomputed.lookup(value))
    return known;
  if (auto load = value.getDefiningOp<LoadOp>(); isOfState(load))
    return loadForBackward(load);
  auto gather = value.getDefiningOp<AllGatherOp>();
  bool isParameter = gather && gather.getCarries() == Payload::Parameter && isForward(gather) &&
                     isa<BlockArgument>(stateBehind(gather.getShard()));
  return isParameter ? Value(gatherForBackward(gather).getResult()) : value;
}

/// Fills `body` with copies of `ops` that yield `outputs`. Returns what they read of others.
SmallVector<Value> Recomputer::fillBody(Block &body, ArrayRef<Operation *> ops, ArrayRef<Value> outputs) {
  SmallVector<Value> inputs;
  IRMapping mapping;
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&body);
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand)) {
        inputs.push_back(supply(operand));
        mapping.map(operand, body.addArgument(operand.getType(), operand.getLoc()));
      }
    clearWork(builder.clone(*op, mapping));
  }
  builder.create<YieldOp>(ops.back()->getLoc(),
                          llvm::map_to_vector(outputs, [&](Value output) { return mapping.lookup(output); }));
  return inputs;
}

/// Makes `value` again before the reader, and with it all that it takes.
void Recomputer::recompute(Value value, OpBuilder &builder) {
  llvm::SetVector<Operation *> ops;
  collect(value, ops);
  SmallVector<Value> outputs;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (!isCheap(op) && formOf(op) != OpForm::View && isCopied(result))
        outputs.push_back(result);
  Region body;
  SmallVector<Value> inputs = fillBody(body.emplaceBlock(), ops.getArrayRef(), outputs);
  SmallVector<Type> types = llvm::map_to_vector(outputs, [](Value output) { return output.getType(); });
  auto region = builder.create<RecomputeOp>(value.getLoc(), types, inputs, findEvent());
  region.getBody().takeBody(body);
  copyWork(value.getDefiningOp(), region);
  setWork(region, Work::Recompute);
  regions.push_back(region);
  for (auto [output, result] : llvm::zip_equal(outputs, region.getOutputs()))
    recomputed[output] = result;
}

void mlir::ds::recomputeInBackward(func::FuncOp func, const OpenRegions &open, DenseSet<Value> kept) {
  Recomputer(func, open, std::move(kept)).run();
}
