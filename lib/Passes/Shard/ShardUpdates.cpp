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

/// True when ranks update parts of a state of `bucket` that each has as a whole.
static bool isPartial(const ShardedBucket &bucket, StateOp state) {
  return bucket.dividesOptimizer && !state.isSharded();
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
  const int64_t part = bucket.getElements() / step.countRanks(bucket.divided);
  auto stateFor = [&](StringAttr member) {
    return bucket.getState(step.lookup(member).getSlot().value_or(""));
  };
  SmallVector<Value> operands;
  for (Value operand : like.getStates()) {
    StateOp state = stateFor(segment.nameOf(cast<BlockArgument>(operand)));
    Value value = segment.read(state);
    if (isPartial(bucket, state))
      value = builder.create<LocalShardOp>(emit.getLoc(), tensorType(value).clone({part}), value,
                                           step.nameAxes(bucket.divided));
    operands.push_back(value);
  }
  operands.push_back(emit.convert(total, like.getGradient().getType().getElementType()));
  llvm::append_range(operands, like.getScalars());
  SmallVector<Value> updated = like.build(builder, operands);
  for (auto [old, value] : llvm::zip_equal(like.getResults(), updated)) {
    StateOp state = stateFor(segment.nameOfResult(old.use_begin()->getOperandNumber()));
    if (isPartial(bucket, state))
      value = builder.create<AllGatherOp>(emit.getLoc(), state.getTensorType(), value,
                                          step.nameAxes(bucket.divided), Payload::Parameter);
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

namespace {
/// Sums of squares, one for each set of axes along which ranks hold other elements: along all others they
/// hold copies, and each element is to count once.
class SquareSums {
public:
  SquareSums(Emitter &emit, const ShardedStep &step) : emit(emit), step(step) {}

  /// Adds the squares of `part` of `bucket`'s gradient, as far as no earlier stage does.
  void add(const ShardedBucket &bucket, Value part, Operation *addBefore);
  /// Forms all sums, of parts that were only noted, and adds them up over ranks.
  Value finish();

  bool addsEarly = false; ///< each part may die before the next is there

private:
  struct Sum {
    ::ds::rt::AxisSet axes;
    SmallVector<Value> parts;
    Value value;
  };
  Value addUp(Value sum, ::ds::rt::AxisSet axes);

  Emitter &emit;
  const ShardedStep &step;
  SmallVector<Sum> sums;
};
} // namespace

void SquareSums::add(const ShardedBucket &bucket, Value part, Operation *addBefore) {
  if (bucket.isCopy)
    return;
  const ::ds::rt::AxisSet axes = bucket.dividesOptimizer ? bucket.cuts | bucket.divided : bucket.cuts;
  auto sum = llvm::find_if(sums, [&](const Sum &known) { return known.axes == axes; });
  if (sum == sums.end())
    sum = sums.insert(sum, {axes, {}, {}});
  if (!addsEarly) {
    sum->parts.push_back(part);
    return;
  }
  OpBuilder &builder = emit.getBuilder();
  builder.setInsertionPointAfterValue(part);
  Value square = buildSumOfSquares(emit, part);
  builder.setInsertionPoint(addBefore);
  sum->value = sum->value ? emit.add(sum->value, square) : square;
}

/// The sum over ranks along `axes`.
Value SquareSums::addUp(Value sum, ::ds::rt::AxisSet axes) {
  if (step.countRanks(axes) == 1)
    return sum;
  return emit.getBuilder().create<AllReduceOp>(emit.getLoc(), sum.getType(), ReduceKind::Sum, sum,
                                               step.nameAxes(axes), Payload::Statistic);
}

/// A sum along many axes joins that of the most of these once it is complete along the others. The stages
/// come last and alone: each has sums of its own.
Value SquareSums::finish() {
  Value total;
  for (Sum &sum : sums)
    if (!sum.parts.empty())
      sum.value = buildSumOfSquares(emit, sum.parts);
  llvm::stable_sort(sums, [](const Sum &a, const Sum &b) { return a.axes.count() > b.axes.count(); });
  for (size_t index = 0; index < sums.size(); ++index) {
    const Sum &sum = sums[index];
    auto next = std::find_if(sums.begin() + index + 1, sums.end(),
                             [&](const Sum &other) { return sum.axes.hasAll(other.axes); });
    Value &into = next == sums.end() ? total : next->value;
    Value value = addUp(sum.value, next == sums.end() ? sum.axes : sum.axes - next->axes);
    into = into ? emit.add(into, value) : value;
  }
  if (!total)
    total = emit.splat(RankedTensorType::get({}, emit.getBuilder().getF64Type()), 0.0);
  return addUp(total, step.getShape().stages);
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
  SquareSums sums(emit, step);
  sums.addsEarly = squares.ops.size() > 1;
  for (auto [bucket, part] : llvm::zip_equal(step.getBuckets(), totals))
    if (part)
      sums.add(bucket, part, total.getDefiningOp());
  Value(total).replaceAllUsesWith(sums.finish());
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
