//===- OpenLoss.cpp - The loss as elementwise ops and sums -------------------------===//
//
// A cross-entropy needs three numbers of a row: the largest logit, the sum of exponentials, and the target's
// logit. Each is a reduction over classes, so that ranks which have some of the classes each exchange three
// numbers a row and no logits; which classes there are is a comparison with a count. The gradient is
// elementwise in the logits.
//
//===---------------------------------------------------------------------------===//
#include "OpenLoss.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include <limits>

using namespace mlir;
using namespace mlir::ds;

namespace {
/// The logits [N, C] of one loss in f32, and what is read of them.
class OpenedLogits {
public:
  OpenedLogits(Emitter &emit, Value logits, Value targets, int64_t ignored, std::optional<APFloat> cap,
               int64_t existing)
      : emit(emit), targets(targets), shape(tensorType(logits).getShape()) {
    x = emit.convert(logits, emit.getBuilder().getF32Type());
    if (cap) {
      const double limit = cap->convertToDouble();
      bent = emit.unary<TanhOp>(emit.div(x, emit.splatLike(x, limit)));
      x = emit.scale(bent, limit);
    }
    if (existing < shape[1]) {
      Value isThere =
          emit.compare(Predicate::LT, classes(), emit.splat(numbers(), static_cast<double>(existing)));
      x = emit.select(isThere, x, emit.splatLike(x, -std::numeric_limits<double>::infinity()));
    }
    isCounted = emit.compare(Predicate::NE, targets, emit.splatLike(targets, static_cast<double>(ignored)));
  }

  /// Logarithm of each row's sum of exponentials, [N].
  Value lse() {
    Value largest = emit.reduce(ReduceKind::Max, x, {1});
    Value exponentials = emit.unary<ExpOp>(emit.sub(x, emit.repeatAlong(largest, {1}, shape)));
    return emit.add(emit.unary<LogOp>(emit.sum(exponentials, {1})), largest);
  }
  /// Rows that have a target, as a number.
  Value count() { return emit.sum(emit.convert(isCounted, emit.getBuilder().getF32Type()), {0}); }
  /// Sum over these rows of lse - logit of the target, by `over`; 0 where that is 0.
  Value loss(Value lse, Value over) {
    Value none = emit.splatLike(x, 0);
    Value picked = emit.sum(emit.select(isTarget(), x, none), {1});
    Value each = emit.select(isCounted, emit.sub(lse, picked), emit.splatLike(lse, 0));
    return divide(emit.sum(each, {0}), over);
  }
  /// The gradient by the logits, in their type.
  Value gradient(Value lse, Value scale, Value over, Type type, std::optional<APFloat> cap) {
    Value one = emit.splatLike(x, 1), none = emit.splatLike(x, 0);
    Value share = emit.unary<ExpOp>(emit.sub(x, emit.repeatAlong(lse, {1}, shape)));
    Value each = emit.sub(share, emit.select(isTarget(), one, none));
    Value factor = emit.repeatScalar(divide(scale, over), each);
    Value gradient = emit.mul(each, factor);
    if (cap)
      gradient = emit.mul(gradient, emit.sub(one, emit.square(bent)));
    gradient = emit.select(emit.broadcast(isCounted, {0}, shape), gradient, none);
    return emit.convert(gradient, cast<RankedTensorType>(type).getElementType());
  }

private:
  RankedTensorType numbers() { return RankedTensorType::get(shape, emit.getBuilder().getI64Type()); }
  Value classes() { return emit.getBuilder().create<IotaOp>(emit.getLoc(), numbers(), 1, 0, 1); }
  Value isTarget() { return emit.compare(Predicate::EQ, classes(), emit.broadcast(targets, {0}, shape)); }
  Value divide(Value sum, Value over) {
    Value none = emit.splatLike(over, 0);
    Value isNone = emit.compare(Predicate::EQ, over, none);
    return emit.select(isNone, none, emit.div(sum, emit.select(isNone, emit.splatLike(over, 1), over)));
  }

  Emitter &emit;
  Value targets, x, bent, isCounted;
  SmallVector<int64_t> shape;
};
} // namespace

/// Puts what `make` builds of the op's logits, one value per result, in its place.
template <typename OpT>
static void open(OpT op, int64_t existing, function_ref<SmallVector<Value>(OpenedLogits &)> make) {
  WorkListener listener(op);
  OpBuilder builder(op->getContext(), &listener);
  builder.setInsertionPoint(op);
  Emitter emit(builder, op.getLoc());
  OpenedLogits logits(emit, op.getLogits(), op.getTargets(), op.getIgnoreIndex(), op.getCap(), existing);
  op->replaceAllUsesWith(make(logits));
  op.erase();
}

static void open(CrossEntropyOp op, int64_t existing) {
  open(op, existing, [&](OpenedLogits &logits) -> SmallVector<Value> {
    Value lse = logits.lse(), count = logits.count();
    Value over = op.getDenominator() ? Value(op.getDenominator()) : count;
    return {logits.loss(lse, over), lse, count};
  });
}

static void open(CrossEntropyGradOp op, int64_t existing) {
  open(op, existing, [&](OpenedLogits &logits) -> SmallVector<Value> {
    return {logits.gradient(op.getLse(), op.getGrad(), op.getCount(), op.getResult().getType(), op.getCap())};
  });
}

static void open(CrossEntropyWithGradOp op, int64_t existing) {
  open(op, existing, [&](OpenedLogits &logits) -> SmallVector<Value> {
    Value lse = logits.lse(), count = logits.count();
    Value over = op.getDenominator() ? Value(op.getDenominator()) : count;
    Value gradient = logits.gradient(lse, op.getGrad(), over, op.getResult().getType(), op.getCap());
    return {logits.loss(lse, over), count, gradient};
  });
}

void mlir::ds::openLosses(func::FuncOp func, const DenseMap<int64_t, int64_t> &existing) {
  auto classesOf = [&](Operation &op) {
    const int64_t columns = tensorType(op.getOperand(0)).getDimSize(1);
    auto padded = existing.find(columns);
    return padded == existing.end() ? columns : padded->second;
  };
  for (Operation &op : llvm::make_early_inc_range(func.getBody().front())) {
    if (auto loss = dyn_cast<CrossEntropyOp>(op))
      open(loss, classesOf(op));
    else if (auto gradient = dyn_cast<CrossEntropyGradOp>(op))
      open(gradient, classesOf(op));
    else if (auto both = dyn_cast<CrossEntropyWithGradOp>(op))
      open(both, classesOf(op));
  }
}
