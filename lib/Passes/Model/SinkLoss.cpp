//===- SinkLoss.cpp - Brings a loss's forward to its backward --------------------===//
//
// Differentiation writes all of backward behind all of forward: the chunks of a split loss would all be made
// before the first is consumed. Nothing else of a step needs their logits, so they may as well be made where
// their gradient is. Ops are visited last to first: when one is looked at, its readers have found their
// place.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SINKLOSS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

/// The ops of one block that may sink.
class Sinking {
public:
  explicit Sinking(Block &block) : block(block) {
    findLosses();
    for (auto [index, op] : llvm::enumerate(block))
      places[&op] = {index, /*isStill=*/true};
  }

  void run() {
    SmallVector<Operation *> ops; // as they stand now: what has sunk is not looked at where it is then
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (losses.contains(op) || makesLogits(op))
        sink(op);
  }

private:
  /// Cross-entropies, and the numbers that are computed from their losses.
  void findLosses() {
    auto isNumber = [](Value value) { return tensorType(value).getRank() == 0; };
    auto isOfLoss = [&](Value operand) { return losses.contains(operand.getDefiningOp()); };
    for (Operation &op : block.without_terminator())
      if (isa<CrossEntropyOp>(op) ||
          (llvm::all_of(op.getResults(), isNumber) && llvm::any_of(op.getOperands(), isOfLoss)))
        losses.insert(&op);
  }

  /// True for a product, or a conversion of one, that only a cross-entropy and its gradient read as logits.
  bool makesLogits(Operation *op) {
    if (!isa<MatmulOp, ConvertOp>(op) || op->use_empty())
      return false;
    bool result = llvm::all_of(op->getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      bool readsLogits = isa<CrossEntropyOp, CrossEntropyGradOp>(user) && use.getOperandNumber() == 0;
      return readsLogits || makers.contains(user);
    });
    if (result)
      makers.insert(op);
    return result;
  }

  /// Whether `a` stands before `b`. To number the block anew for each question would take as long as all ops
  /// times all chunks: so that is left to two ops that have sunk to the same one.
  bool isBefore(Operation *a, Operation *b) const {
    const Place ofA = places.at(a), ofB = places.at(b);
    return ofA == ofB ? a->isBeforeInBlock(b) : ofA < ofB;
  }

  /// Moves `op` to before the first op that reads it.
  void sink(Operation *op) {
    Operation *first = nullptr;
    for (Operation *user : op->getUsers())
      if (!first || isBefore(user, first))
        first = user;
    if (!first)
      return;
    op->moveBefore(first);
    places[op] = {places.at(first).first, /*isStill=*/false};
  }

  /// The number of an op that has not moved, and whether it is that one or has sunk to before it.
  using Place = std::pair<size_t, bool>;

  Block &block;
  DenseMap<Operation *, Place> places;
  DenseSet<Operation *> losses, makers;
};

struct SinkLoss : mlir::ds::impl::SinkLossBase<SinkLoss> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    if (!getOperation().isExternal())
      Sinking(getOperation().getBody().front()).run();
  }
};
} // namespace
