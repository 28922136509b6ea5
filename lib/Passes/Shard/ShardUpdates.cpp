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
      value = builder.create<AllGatherOp>(emit.getLoc(), state.getTensorType(), value, step.getAxes(),
                                          Payload::Parameter);
    segment.write(state, value);
  }
}

namespace {
/// The segment's sums of squares, and what they are added up to.
struct Squares {
  SmallVector<SumOfSquaresOp> ops;
  llvm::SetVector<Value> sums; ///< of squares, and sums of sums, in order
  Value total;                 ///< in which all meet; null where they do not meet in one
};
} // namespace

static Squares findSquares(Block &body) {
  Squares squares;
  for (Operation &op : body) {
    auto isSum = [&](Value value) { return squares.sums.contains(value); };
    if (auto square = dyn_cast<SumOfSquaresOp>(op))
      squares.ops.push_back(square);
    else if (!isa<AddOp>(op) || !llvm::all_of(op.getOperands(), isSum))
      continue;
    squares.sums.insert(op.getResult(0));
  }
  for (Value sum : squares.sums) {
    bool isInner = llvm::all_of(sum.getUsers(), [&](Operation *user) {
      return user->getNumResults() == 1 && squares.sums.contains(user->getResult(0));
    });
    if (isInner && !sum.use_empty())
      continue;
    if (squares.total) {
      squares.total = {};
      break;
    }
    squares.total = sum;
  }
  return squares;
}

/// Whether each gradient counts in the total once for each update by it. Two parameters can have one
/// gradient, whose squares are then summed up once and added twice, or twice.
static bool coversGradients(ShardedStep &step, const Squares &squares) {
  DenseMap<Value, int64_t> missing; // gradient -> updates by it, less how often its squares are in the total
  for (ShardedBucket &bucket : step.getBuckets())
    for (UpdateOp update : bucket.updates)
      ++missing[update.getGradient()];
  DenseMap<Value, int64_t> times; // sum -> how often it is in the total
  times[squares.total] = 1;
  for (Value sum : llvm::reverse(squares.sums.getArrayRef())) {
    const int64_t count = times.lookup(sum);
    const bool isOfGradients = isa<SumOfSquaresOp>(sum.getDefiningOp());
    for (Value operand : sum.getDefiningOp()->getOperands())
      if (isOfGradients)
        missing[operand] -= count;
      else
        times[operand] += count;
  }
  return llvm::all_of(missing, [](const auto &entry) { return entry.second == 0; });
}

/// Forms the sum of squares from what ranks have.
static LogicalResult shardNorm(ShardedStep &step, SegmentStates &segment, ArrayRef<Value> totals) {
  Squares squares = findSquares(segment.getBody());
  const Value total = squares.total;
  if (squares.ops.empty())
    return success();
  if (!total || !coversGradients(step, squares))
    return squares.ops.front().emitOpError(
        "expects one sum over the squares of all gradients that are updated by");
  OpBuilder builder(total.getDefiningOp());
  Emitter emit(builder, NameLoc::get(builder.getStringAttr("grad_norm"), total.getLoc()));
  SmallVector<Value> parts =
      llvm::to_vector(llvm::make_filter_range(totals, [](Value part) { return bool(part); }));
  Value sum;
  if (squares.ops.size() == 1)
    sum = buildSumOfSquares(emit, parts);
  else // where updates do not wait for all gradients, each part may die before the next is there
    for (Value part : parts) {
      builder.setInsertionPointAfterValue(part);
      Value square = buildSumOfSquares(emit, part);
      builder.setInsertionPoint(total.getDefiningOp());
      sum = sum ? emit.add(sum, square) : square;
    }
  if (step.dividesOptimizer())
    sum = builder.create<AllReduceOp>(emit.getLoc(), sum.getType(), ReduceKind::Sum, sum, step.getAxes(),
                                      Payload::Statistic);
  Value(total).replaceAllUsesWith(sum);
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
