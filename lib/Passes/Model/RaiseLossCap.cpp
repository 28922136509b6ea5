//===- RaiseLossCap.cpp - A cross-entropy caps its logits itself ------------------===//
//
// The largest activation of a model would be stored three more times. What lies between the cap and the loss
// only moves elements, and moves those of the product instead.
//
//===----------------------------------------------------------------------------===//
#include "MatchAttention.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_RAISELOSSCAP
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What is found above a loss.
struct CappedLogits {
  SmallVector<Operation *> moves; ///< from the loss up: reshapes and slices of capped logits
  Value value;                    ///< of which the cap is taken
  double cap = 1;
  double factor = 1; ///< of the value
};
} // namespace

/// `cap * tanh(value * factor / cap)` as the logits of `loss`, with moves in between, which nothing else
/// reads.
static std::optional<CappedLogits> match(CrossEntropyOp loss) {
  CappedLogits logits;
  Value value = loss.getLogits();
  while (isa_and_nonnull<ReshapeOp, SliceOp>(value.getDefiningOp()) && value.hasOneUse()) {
    logits.moves.push_back(value.getDefiningOp());
    value = value.getDefiningOp()->getOperand(0);
  }
  double scale = 1;
  Value bent = stripScale(value, scale);
  auto tanh = bent.getDefiningOp<TanhOp>();
  if (loss.getCap() || !tanh || !value.hasOneUse() || !bent.hasOneUse() || scale == 0)
    return std::nullopt;
  logits.cap = std::abs(scale);
  logits.value = stripScale(tanh.getInput(), scale);
  constexpr double kRounding = 1e-6; // of a reciprocal in f32
  logits.factor = std::abs(scale - 1) < kRounding ? 1 : scale;
  return logits;
}

static void raise(CrossEntropyOp loss, const CappedLogits &logits) {
  OpBuilder builder(loss);
  Emitter emit(builder, loss.getLoc());
  Value value = emit.scale(logits.value, logits.factor);
  for (Operation *move : llvm::reverse(logits.moves)) {
    Operation *copy = builder.clone(*move);
    copy->setOperand(0, value);
    value = copy->getResult(0);
  }
  loss.getLogitsMutable().assign(value);
  loss.setCapAttr(builder.getF64FloatAttr(logits.cap));
  // From the loss up, so that each is read by nothing when its turn comes.
  for (Operation *move : logits.moves)
    move->erase();
}

namespace {
struct RaiseLossCap : mlir::ds::impl::RaiseLossCapBase<RaiseLossCap> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    for (CrossEntropyOp loss : llvm::to_vector(getOperation().getOps<CrossEntropyOp>()))
      if (std::optional<CappedLogits> logits = match(loss))
        raise(loss, *logits);
  }
};
} // namespace
