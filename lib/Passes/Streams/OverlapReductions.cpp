//===- OverlapReductions.cpp - Runs reductions beside the rest of backward -------===//
//
// Three moves on the issue order, none of which changes a value: a reduction is issued as soon as what it
// sums up is complete; what reads its result comes after it is expected to be done, with all that depends on
// that; and compute waits there at the latest, so that the flat gradient's memory is free again.
//
//===---------------------------------------------------------------------------===//
#include "Support/Exchanges.h"
#include "ds/Analysis/Gathers/ReductionOverlap.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ComputeMemory.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_OVERLAPREDUCTIONS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

/// A command that can move.
struct Node {
  ScheduledOpInterface op;
  SmallVector<BufferAccess> accesses;
  bool meetsOthers = false; ///< stages, in the order of their texts
  int64_t notBefore = 0;    ///< number of compute commands that come first
};

class ReductionOverlap {
public:
  ReductionOverlap(func::FuncOp func, const ::ds::cost::Rates &rates, std::optional<int64_t> memory);
  void run();

private:
  static bool isCompute(const Node &node) { return isComputeCommand(node.op); }
  static bool isReduction(const Node &node) {
    auto communicate = dyn_cast<CommunicateOp>(*ScheduledOpInterface(node.op));
    return communicate && isForUpdate(communicate.getCarries()) && !isMessage(communicate);
  }
  /// Whether two commands stay in the order in which they are.
  static bool keepOrder(const Node &a, const Node &b) {
    return conflict(a.accesses, b.accesses) || (a.meetsOthers && b.meetsOthers);
  }
  void hoistReductions();
  void findReaders();
  void deferReaders();
  void reorder();
  void insertWaits();
  ::ds::analysis::ReductionProblem makeProblem() const;

  func::FuncOp func;
  const ::ds::cost::Rates &rates;
  std::optional<int64_t> memory; ///< bytes; nothing: no limit
  std::vector<Node> nodes;
};

} // namespace

ReductionOverlap::ReductionOverlap(func::FuncOp func, const ::ds::cost::Rates &rates,
                                   std::optional<int64_t> memory)
    : func(func), rates(rates), memory(memory) {
  for (auto op : func.getBody().front().getOps<ScheduledOpInterface>())
    if (!op.isEvent())
      nodes.push_back({op, accessesOf(op), meetsStages(op)});
}

/// Issues each reduction right behind the last command that it must not overtake.
void ReductionOverlap::hoistReductions() {
  for (size_t index = 0; index < nodes.size(); ++index) {
    if (!isReduction(nodes[index]))
      continue;
    size_t target = index;
    while (target > 0 && !isReduction(nodes[target - 1]) && !keepOrder(nodes[target - 1], nodes[index]))
      --target;
    std::rotate(nodes.begin() + target, nodes.begin() + index, nodes.begin() + index + 1);
  }
}

/// The reductions beside compute. Planned times are doubled: a wait that comes too early stops compute, one
/// that comes too late holds memory.
::ds::analysis::ReductionProblem ReductionOverlap::makeProblem() const {
  ::ds::analysis::ReductionProblem problem;
  CommandCosts costs(func->getParentOfType<ModuleOp>(), rates);
  DenseSet<Operation *> held;
  for (const Node &node : nodes) {
    if (isCompute(node))
      problem.seconds.push_back(costs.seconds(node.op));
    if (!isReduction(node))
      continue;
    auto reduction = cast<CommunicateOp>(*ScheduledOpInterface(node.op));
    auto input = rootOfBuffer(reduction.getInputs()[0]).getDefiningOp<AllocOp>();
    bool isNew = input && held.insert(input).second;
    problem.reductions.push_back({static_cast<int64_t>(problem.seconds.size()), 2 * costs.seconds(node.op),
                                  isNew ? input.getBuffer().getType().getSizeInBytes() : 0});
  }
  if (memory) {
    problem.budgetBytes = *memory;
    problem.liveBytes = ComputeMemory(func, *memory, held).getLiveBytes();
  }
  return problem;
}

/// Notes for what reads a reduction's result where compute may expect it.
void ReductionOverlap::findReaders() {
  std::vector<int64_t> waits = findWaits(makeProblem());
  size_t next = 0;
  for (size_t index = 0; index < nodes.size(); ++index) {
    if (!isReduction(nodes[index]))
      continue;
    BufferAccess result = windowOf(cast<CommunicateOp>(*nodes[index].op).getOutputs()[0]);
    result.isWrite = true;
    for (size_t reader = index + 1; reader < nodes.size(); ++reader)
      if (isCompute(nodes[reader]) && conflict(nodes[reader].accesses, result))
        nodes[reader].notBefore = std::max(nodes[reader].notBefore, waits[next]);
    ++next;
  }
}

/// Issues commands no earlier than they may be, and those that depend on such behind them.
void ReductionOverlap::deferReaders() {
  std::vector<Node> order, deferred;
  int64_t computed = 0;
  auto flush = [&] {
    auto isDue = [&](const Node &node) { return node.notBefore <= computed; };
    for (Node &node : deferred)
      if (isDue(node))
        order.push_back(node);
    llvm::erase_if(deferred, isDue);
  };
  for (Node &node : nodes) {
    flush();
    for (const Node &other : deferred)
      if (keepOrder(node, other))
        node.notBefore = std::max(node.notBefore, other.notBefore);
    if (node.notBefore > computed)
      deferred.push_back(node);
    else
      order.push_back(node);
    computed += isCompute(node);
  }
  llvm::append_range(order, deferred);
  nodes = std::move(order);
}

/// Writes the order out; allocations and views go to their first use.
void ReductionOverlap::reorder() {
  Operation *terminator = func.getBody().front().getTerminator();
  for (Node &node : nodes)
    node.op->moveBefore(terminator);
  placeBuffers(func);
}

void ReductionOverlap::insertWaits() {
  std::vector<int64_t> waits = findWaits(makeProblem());
  OpBuilder builder(func.getContext());
  SmallVector<Operation *> compute, reductions;
  for (Node &node : nodes)
    if (isCompute(node))
      compute.push_back(node.op);
    else if (isReduction(node))
      reductions.push_back(node.op);
  for (auto [event, reduction] : llvm::enumerate(reductions)) {
    bool isNumber = cast<BufferType>(reduction->getOperand(0).getType()).getTensor().getRank() == 0;
    if (isNumber || waits[event] >= static_cast<int64_t>(compute.size()))
      continue; // nothing to free, or the end of the segment waits for all streams
    builder.setInsertionPointAfter(reduction);
    builder.create<RecordOp>(reduction->getLoc(), event, StreamKind::Reduce);
    builder.setInsertionPoint(compute[waits[event]]);
    builder.create<WaitOp>(reduction->getLoc(), event, StreamKind::Compute);
  }
}

void ReductionOverlap::run() {
  if (llvm::none_of(nodes, isReduction))
    return;
  hoistReductions();
  findReaders();
  deferReaders();
  reorder();
  insertWaits();
}

namespace {
struct OverlapReductions : mlir::ds::impl::OverlapReductionsBase<OverlapReductions> {
  using OverlapReductionsBase::OverlapReductionsBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(getOperation());
    if (failed(rates))
      return signalPassFailure();
    auto module = getOperation()->getParentOfType<ModuleOp>();
    ReductionOverlap(getOperation(), *rates, bytesWithin(memory, module)).run();
  }
};
} // namespace
