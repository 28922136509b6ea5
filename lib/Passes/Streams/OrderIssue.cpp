//===- OrderIssue.cpp - Orders ops so that the peak of live memory is low --------===//
//
// Translates a block into the plain problem of Analysis/IssueOrder: values that share memory (views of one
// tensor, the old and the new value of a state) are one buffer, so that the order cannot let a state be
// replaced before its last reader. What a stage has with others keeps its order, whatever the values say.
//
//===---------------------------------------------------------------------------===//
#include "Buffers/StridedView.h"
#include "Support/Exchanges.h"
#include "ds/Analysis/Ordering/IssueOrder.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ORDERISSUE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// Bytes of a tensor's elements; what is stored elsewhere takes none of the device.
static int64_t byteSize(Type type) {
  if (isa<StoredType>(type))
    return 0;
  return BufferType::getContiguous(cast<RankedTensorType>(type)).getSizeInBytes();
}

namespace {
/// The problem of one block, with the buffer of each value.
class BlockProblem {
public:
  explicit BlockProblem(func::FuncOp func);
  analysis::OrderProblem problem;
  SmallVector<Operation *> ops;

private:
  uint32_t addBuffer(int64_t bytes, bool liveIn, bool liveOut);
  void addOp(Operation *op);

  DenseMap<Operation *, uint32_t> indexOf;
  DenseMap<Value, uint32_t> bufferOf;
  std::optional<uint32_t> lastMeeting;  ///< of those with other stages
  DenseMap<Value, uint32_t> finalState; ///< returned value -> the buffer of the state it becomes
};
} // namespace

uint32_t BlockProblem::addBuffer(int64_t bytes, bool liveIn, bool liveOut) {
  analysis::OrderBuffer buffer;
  buffer.bytes = bytes;
  buffer.liveIn = liveIn;
  buffer.liveOut = liveOut;
  problem.buffers.push_back(buffer);
  return problem.buffers.size() - 1;
}

BlockProblem::BlockProblem(func::FuncOp func) {
  DenseMap<Attribute, uint32_t> states;
  for (BlockArgument argument : func.getArguments()) {
    uint32_t buffer = addBuffer(byteSize(argument.getType()), true, true);
    bufferOf[argument] = buffer;
    if (Attribute state = func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr))
      states[state] = buffer;
  }
  Block &block = func.getBody().front();
  for (auto [index, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    Attribute state = func.getResultAttr(index, DsDialect::kStateAttr);
    if (!state || !value.getDefiningOp())
      continue;
    auto [it, isNew] = states.try_emplace(state, 0);
    if (isNew)
      it->second = addBuffer(byteSize(value.getType()), true, true);
    finalState.try_emplace(value, it->second);
    // A rank's part of a state that is gathered in its place is written there, before the gather.
    if (auto gather = value.getDefiningOp<AllGatherOp>(); gather && gather.getShard().getDefiningOp())
      finalState.try_emplace(gather.getShard(), it->second);
  }
  for (Operation &op : block.without_terminator())
    addOp(&op);
}

void BlockProblem::addOp(Operation *op) {
  analysis::OrderOp entry;
  for (Value operand : op->getOperands()) {
    if (!llvm::is_contained(entry.reads, bufferOf.at(operand)))
      entry.reads.push_back(bufferOf.at(operand));
    // A view writes nothing, so that memory alone does not hold its readers back.
    if (auto maker = indexOf.find(operand.getDefiningOp()); maker != indexOf.end())
      entry.after.push_back(maker->second);
  }
  for (Value result : op->getResults()) {
    auto state = finalState.find(result);
    if (isView(op) && state == finalState.end()) {
      bufferOf[result] = bufferOf.at(op->getOperand(0));
      continue;
    }
    bufferOf[result] =
        state != finalState.end() ? state->second : addBuffer(byteSize(result.getType()), false, false);
    entry.writes.push_back(bufferOf[result]);
  }
  if (meetsStages(op)) {
    if (lastMeeting)
      entry.after.push_back(*lastMeeting);
    lastMeeting = ops.size();
  }
  indexOf[op] = ops.size();
  problem.ops.push_back(std::move(entry));
  ops.push_back(op);
}

/// The last op that reads `value` or a view of it; null when nothing does.
static Operation *lastReader(Value value) {
  Operation *last = nullptr;
  SmallVector<Value> pending = {value};
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses()) {
      Operation *reader = use.getOwner();
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
      if (isWindowed(use))
        pending.append(reader->result_begin(), reader->result_end());
    }
  return last;
}

/// Moves `op` behind `last` where it comes before, and nothing that does so too reads its results.
static void sinkBehind(Operation *last, Operation *op) {
  if (op->isBeforeInBlock(last) &&
      llvm::all_of(op->getUsers(), [&](Operation *user) { return last->isBeforeInBlock(user); }))
    op->moveAfter(last);
}

/// Moves each op that makes a state's new value behind the last reader of the old one, unless something that
/// comes before that reads the new value: the order is free to begin with, and in memory it is not any more.
static void sinkUpdates(func::FuncOp func) {
  Operation *terminator = func.getBody().front().getTerminator();
  DenseMap<Attribute, BlockArgument> oldValues;
  for (BlockArgument argument : func.getArguments())
    if (Attribute state = func.getArgAttr(argument.getArgNumber(), DsDialect::kStateAttr))
      oldValues[state] = argument;
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    auto old = oldValues.find(func.getResultAttr(index, DsDialect::kStateAttr));
    Operation *maker = value.getDefiningOp(),
              *last = old == oldValues.end() ? nullptr : lastReader(old->second);
    if (!maker || !last || last == terminator)
      continue;
    sinkBehind(last, maker);
    // The part that is gathered is made in the state's place as well.
    auto gather = dyn_cast<AllGatherOp>(maker);
    if (Operation *part = gather ? gather.getShard().getDefiningOp() : nullptr)
      sinkBehind(last, part);
  }
}

/// Whether the order of `func` was settled in phase fused and still holds: neither calls are computed again
/// nor comes anything back from elsewhere. What kernels alone compute again stands with what reads it.
static bool isOrdered(func::FuncOp func) {
  auto phase = func->getParentOp()->getAttrOfType<PhaseAttr>(DsDialect::kPhaseAttr);
  return phase && phase.getValue() == Phase::Resident &&
         llvm::none_of(func.getBody().front(), [](Operation &op) {
           return isa<AfterOp>(op) || (isa<LoadOp>(op) && getWork(&op) == Work::Recompute);
         });
}

namespace {
struct OrderIssue : mlir::ds::impl::OrderIssueBase<OrderIssue> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Fused, Phase::Resident})))
      return signalPassFailure();
    sinkUpdates(getOperation());
    if (isOrdered(getOperation()))
      return;
    BlockProblem block(getOperation());
    ::ds::Result<analysis::IssueOrder> order = analysis::orderForMemory(block.problem);
    if (!order) {
      getOperation().emitError("no issue order: ") << order.error().message;
      return signalPassFailure();
    }
    if (std::optional<std::string> fault = analysis::check(*order, block.problem)) {
      getOperation().emitError("the issue order is wrong: ") << *fault;
      return signalPassFailure();
    }
    Operation *terminator = getOperation().getBody().front().getTerminator();
    for (uint32_t index : order->order)
      block.ops[index]->moveBefore(terminator);
  }
};
} // namespace
