//===- JoinLoss.cpp - A loss and its gradient in one pass over the logits --------===//
//
// Backward of a cross-entropy asks forward for one number of each row only. A kernel that holds a row while
// it finds that number can write the row's gradient at once, if what reaches the loss is known by then:
// mostly a constant, or the scale of losses in fp16. ds-sink-loss has brought the two together long before;
// here it is settled what is kept and what is recomputed, so that nothing else is to be done with the logits.
//
// The pair becomes one op where the gradient stood. Whatever reads the loss or the count comes behind it.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Ds.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::ds {
#define GEN_PASS_DEF_JOINLOSS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Whether two values are equal: one value, or the same views of one. Backward has views of its own of what
/// forward reads, and nothing merges them.
static bool areEqual(Value x, Value y) {
  if (x == y)
    return true;
  auto viewX = x.getDefiningOp<ReshapeOp>(), viewY = y.getDefiningOp<ReshapeOp>();
  if (viewX && viewY)
    return x.getType() == y.getType() && areEqual(viewX.getInput(), viewY.getInput());
  auto sliceX = x.getDefiningOp<SliceOp>(), sliceY = y.getDefiningOp<SliceOp>();
  return sliceX && sliceY && x.getType() == y.getType() && sliceX.getOffsets() == sliceY.getOffsets() &&
         sliceX.getStrides() == sliceY.getStrides() && areEqual(sliceX.getInput(), sliceY.getInput());
}

/// The gradient that can be made with `loss`: the only reader of its row statistics, for the same logits and
/// divided by what the loss is divided by.
static CrossEntropyGradOp findGradient(CrossEntropyOp loss) {
  if (!loss.getLse().hasOneUse())
    return {};
  auto gradient = dyn_cast<CrossEntropyGradOp>(*loss.getLse().user_begin());
  Value divisor = loss.getDenominator() ? loss.getDenominator() : loss.getCount();
  bool fits = gradient && gradient->getBlock() == loss->getBlock() &&
              areEqual(gradient.getLogits(), loss.getLogits()) &&
              areEqual(gradient.getTargets(), loss.getTargets()) && gradient.getLse() == loss.getLse() &&
              gradient.getCount() == divisor && gradient.getIgnoreIndex() == loss.getIgnoreIndex() &&
              gradient.getCapAttr() == loss.getCapAttr();
  return fits ? gradient : CrossEntropyGradOp();
}

/// The ops before `gradient` that wait for `loss`; nothing where what reaches the gradient is among them.
static std::optional<SmallVector<Operation *>> findWaiting(CrossEntropyOp loss, CrossEntropyGradOp gradient) {
  SmallVector<Operation *> waiting;
  DenseSet<Operation *> known = {loss};
  auto waits = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && known.contains(operand.getDefiningOp());
    });
  };
  for (Operation *op = loss->getNextNode(); op != gradient; op = op->getNextNode())
    if (waits(op)) {
      if (!isMemoryEffectFree(op))
        return std::nullopt;
      waiting.push_back(op);
      known.insert(op);
    }
  known.erase(loss); // whose row statistics the gradient reads
  const bool isLate = waits(gradient) || gradient.getGrad().getDefiningOp() == loss;
  return isLate ? std::nullopt : std::optional(std::move(waiting));
}

/// Removes the views that give `value` as far as nothing reads them any more.
static void eraseUnread(Value value) {
  Operation *view = value.getDefiningOp();
  if (!view || !isa<ReshapeOp, SliceOp>(view) || !view->use_empty())
    return;
  Value input = view->getOperand(0);
  view->erase();
  eraseUnread(input);
}

/// Brings the numbers that are computed of the loss to behind it, as far as all that they read is there: a
/// loss that waits for the end of backward takes memory at its peak.
static void moveNumbers(CrossEntropyWithGradOp both) {
  Operation *last = both;
  DenseSet<Operation *> moved = {both};
  auto isMoved = [&](Value value) { return moved.contains(value.getDefiningOp()); };
  auto isThere = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    return !maker || isMoved(value) || maker->isBeforeInBlock(both);
  };
  auto isNumber = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0;
  };
  for (Operation *op = both->getNextNode(), *next; op; op = next) {
    next = op->getNextNode();
    bool moves = op->getNumResults() > 0 && llvm::all_of(op->getResultTypes(), isNumber) &&
                 isMemoryEffectFree(op) && llvm::any_of(op->getOperands(), isMoved) &&
                 llvm::all_of(op->getOperands(), isThere);
    if (!moves)
      continue;
    if (op != last->getNextNode())
      op->moveAfter(last);
    last = op;
    moved.insert(op);
  }
}

/// Makes one op of a loss and its gradient, behind which comes what was `waiting` for the loss.
static void join(CrossEntropyOp loss, CrossEntropyGradOp gradient, ArrayRef<Operation *> waiting) {
  WorkListener listener(gradient);
  OpBuilder builder(gradient, &listener);
  auto both = builder.create<CrossEntropyWithGradOp>(loss.getLoc(), loss.getLogits(), loss.getTargets(),
                                                     gradient.getGrad(), loss.getDenominator(),
                                                     loss.getIgnoreIndexAttr(), loss.getCapAttr());
  gradient.getResult().replaceAllUsesWith(both.getResult());
  Value logits = gradient.getLogits(), targets = gradient.getTargets();
  gradient.erase();
  eraseUnread(logits);
  eraseUnread(targets);
  loss.getLoss().replaceAllUsesWith(both.getLoss());
  loss.getCount().replaceAllUsesWith(both.getCount());
  loss.erase();
  for (Operation *op : llvm::reverse(waiting))
    op->moveAfter(both);
  moveNumbers(both);
}

namespace {
struct JoinLoss : mlir::ds::impl::JoinLossBase<JoinLoss> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    if (!isForCuda(getOperation()->getParentOfType<ModuleOp>()))
      return;
    for (CrossEntropyOp loss : llvm::to_vector(getOperation().getOps<CrossEntropyOp>()))
      if (CrossEntropyGradOp gradient = findGradient(loss); gradient && loss->isBeforeInBlock(gradient))
        if (std::optional<SmallVector<Operation *>> waiting = findWaiting(loss, gradient))
          join(loss, gradient, *waiting);
  }
};
} // namespace
