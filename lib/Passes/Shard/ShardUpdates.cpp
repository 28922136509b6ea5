//===- ShardUpdates.cpp - Ranks update what they have -----------------------------===//
//
// The body of a ds.update holds for any shape, so that one flat update takes the place of those of a bucket's
// members. Where a parameter is whole on every rank, a rank updates its part in place and all parts are
// gathered; the padding is updated too, from zeros to whatever, and nothing reads it.
//
//===---------------------------------------------------------------------------===//
#include "ShardedStep.h"
#include "Support/Optimizers.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// True when ranks update parts of a state that each has as a whole.
static bool isPartial(const ShardedStep &step, StateOp state) {
  return step.dividesOptimizer() && !state.isSharded();
}

/// Replaces the updates of the bucket's members by one of what the rank has.
static void updateBucket(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket, Value total) {
  UpdateOp like = bucket.updates.front();
  Operation *after = total.getDefiningOp();
  for (UpdateOp update : bucket.updates)
    after = laterOf(after, update);
  OpBuilder builder(after->getContext());
  builder.setInsertionPointAfter(after);
  Emitter emit(builder, bucket.op.getLoc());
  auto stateFor = [&](StringAttr member) {
    return bucket.getState(step.lookup(member).getSlot().value_or(""));
  };
  SmallVector<Value> operands;
  for (Value operand : like.getStates()) {
    StateOp state = stateFor(segment.nameOf(cast<BlockArgument>(operand)));
    Value value = segment.read(state);
    if (isPartial(step, state))
      value = builder.create<LocalShardOp>(emit.getLoc(),
                                           tensorType(value).clone({bucket.getElements() / step.getRanks()}),
                                           value, step.getAxes());
    operands.push_back(value);
  }
  operands.push_back(emit.convert(total, like.getGradient().getType().getElementType()));
  llvm::append_range(operands, like.getScalars());
  SmallVector<Value> updated = like.build(builder, operands);
  for (auto [old, value] : llvm::zip_equal(like.getResults(), updated)) {
    StateOp state = stateFor(segment.nameOfResult(old.use_begin()->getOperandNumber()));
    if (isPartial(step, state))
      value = builder.create<AllGatherOp>(emit.getLoc(), state.getTensorType(), value, step.getAxes());
    segment.write(state, value);
  }
}

/// The sum that all of the segment's sums of squares meet in; null where they do not meet in one.
static Value findTotalOfSquares(Block &body, SmallVectorImpl<SumOfSquaresOp> &squares) {
  llvm::SetVector<Value> sums;
  for (Operation &op : body) {
    auto isSum = [&](Value value) { return sums.contains(value); };
    if (auto square = dyn_cast<SumOfSquaresOp>(op))
      squares.push_back(square);
    else if (!isa<AddOp>(op) || !llvm::all_of(op.getOperands(), isSum))
      continue;
    sums.insert(op.getResult(0));
  }
  Value total;
  for (Value sum : sums) {
    bool isInner = llvm::all_of(sum.getUsers(), [&](Operation *user) {
      return user->getNumResults() == 1 && sums.contains(user->getResult(0));
    });
    if (isInner && !sum.use_empty())
      continue;
    if (total)
      return {};
    total = sum;
  }
  return total;
}

/// Whether `squares` are those of each gradient that is updated by, once.
static bool coversGradients(ShardedStep &step, ArrayRef<SumOfSquaresOp> squares) {
  DenseSet<Value> gradients;
  for (ShardedBucket &bucket : step.getBuckets())
    for (UpdateOp update : bucket.updates)
      gradients.insert(update.getGradient());
  size_t numGradients = gradients.size(), numSquares = 0;
  for (SumOfSquaresOp square : squares) {
    numSquares += square.getInputs().size();
    for (Value input : square.getInputs())
      gradients.erase(input);
  }
  return gradients.empty() && numSquares == numGradients;
}

/// Forms the sum of squares from what ranks have.
static LogicalResult shardNorm(ShardedStep &step, SegmentStates &segment, ArrayRef<Value> totals) {
  SmallVector<SumOfSquaresOp> squares;
  Value total = findTotalOfSquares(segment.getBody(), squares);
  if (squares.empty())
    return success();
  if (!total || !coversGradients(step, squares))
    return squares.front().emitOpError(
        "expects one sum over the squares of all gradients that are updated by");
  OpBuilder builder(total.getDefiningOp());
  Emitter emit(builder, NameLoc::get(builder.getStringAttr("grad_norm"), total.getLoc()));
  SmallVector<Value> parts =
      llvm::to_vector(llvm::make_filter_range(totals, [](Value part) { return bool(part); }));
  Value sum;
  if (squares.size() == 1)
    sum = buildSumOfSquares(emit, parts);
  else // where updates do not wait for all gradients, each part may die before the next is there
    for (Value part : parts) {
      builder.setInsertionPointAfterValue(part);
      Value square = buildSumOfSquares(emit, part);
      builder.setInsertionPoint(total.getDefiningOp());
      sum = sum ? emit.add(sum, square) : square;
    }
  if (step.dividesOptimizer())
    sum = builder.create<AllReduceOp>(emit.getLoc(), sum.getType(), ReduceKind::Sum, sum, step.getAxes());
  total.replaceAllUsesWith(sum);
  return success();
}

LogicalResult mlir::ds::shardUpdates(ShardedStep &step, SegmentStates &segment, ArrayRef<Value> totals) {
  if (failed(shardNorm(step, segment, totals)))
    return failure();
  for (auto [bucket, total] : llvm::zip_equal(step.getBuckets(), totals))
    if (bucket.isTrained())
      updateBucket(step, segment, bucket, total);
  return success();
}
