//===- LossScale.cpp - Scaled losses and skipped steps --------------------------===//
#include "LossScale.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;

StateOp mlir::ds::declareLossScale(ModuleOp module, const LossScaleOptions &options) {
  if (Operation *other = SymbolTable::lookupSymbolIn(module, kLossScaleState)) {
    other->emitOpError("expects a name that the step does not use itself, but got \"")
        << kLossScaleState << '"';
    return {};
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  MLIRContext *context = module.getContext();
  return builder.create<StateOp>(module.getLoc(), kLossScaleState, Role::Scalar, /*trainable=*/false,
                                 /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(),
                                 InitAttr::get(context, InitKind::Constant, options.initial, 0.0),
                                 Space::Device, RankedTensorType::get({}, builder.getF32Type()));
}

Value mlir::ds::buildIsFinite(Emitter &emit, Value x) {
  // Ordered: NaN compares false.
  return emit.compare(Predicate::LT, x, emit.splatLike(x, INFINITY));
}

/// Rank-0 truth value: an overflow that is no longer let pass.
static Value buildLowers(Emitter &emit, const LossScaleOptions &options, const LossScaleState &before) {
  if (options.hysteresis == 1)
    return emit.scalar(emit.getBuilder().getI1Type(), 1);
  return emit.compare(Predicate::EQ, before.hysteresis, emit.splatLike(before.hysteresis, 1));
}

LossScaleState mlir::ds::updateLossScale(Emitter &emit, const LossScaleOptions &options,
                                         const LossScaleState &before, Value isFinite) {
  Value scale = before.scale, hysteresis = before.hysteresis;
  Value zero = emit.splatLike(before.goodSteps, 0), full = emit.splatLike(hysteresis, options.hysteresis);

  Value lowers = buildLowers(emit, options, before);
  Value half = emit.binary<MaxOp>(emit.scale(scale, 0.5), emit.splatLike(scale, options.minimum));
  Value spent = emit.select(lowers, hysteresis, emit.shift(hysteresis, -1));

  Value steps = emit.shift(before.goodSteps, 1);
  Value grows =
      emit.compare(Predicate::EQ, steps, emit.splatLike(steps, static_cast<double>(options.window)));
  // The largest power of two: an infinite scale could never come down again.
  Value twice = emit.binary<MinOp>(emit.scale(scale, 2.0), emit.splatLike(scale, std::ldexp(1.0, 127)));
  Value refilled = options.consecutiveHysteresis ? full : emit.select(grows, full, hysteresis);

  LossScaleState after;
  after.scale = emit.select(isFinite, emit.select(grows, twice, scale), emit.select(lowers, half, scale));
  after.goodSteps = emit.select(isFinite, emit.select(grows, zero, steps), zero);
  after.hysteresis = emit.select(isFinite, refilled, spent);
  return after;
}

Value mlir::ds::buildSkipped(Emitter &emit, const LossScaleOptions &options, const LossScaleState &before,
                             Value isFinite) {
  Type i64 = emit.getBuilder().getI64Type();
  Value skipped = emit.scalar(i64, 1);
  if (before.scale) {
    Value isLowest = emit.compare(Predicate::EQ, before.scale, emit.splatLike(before.scale, options.minimum));
    Value givesUp = emit.binary<AndOp>(buildLowers(emit, options, before), isLowest);
    skipped = emit.select(givesUp, emit.scalar(i64, 2), skipped);
  }
  return emit.select(isFinite, emit.scalar(i64, 0), skipped);
}
