//===- ShardGradients.cpp - Gradients meet in buckets and are reduced -------------===//
//
// The pieces of a bucket are joined into one flat tensor, of which each is made in its window. Where
// gradients are divided, the ranks' flat tensors are reduced in every micro-step and each rank keeps its
// part; otherwise what a rank adds up is its own until the last micro-step reduces it.
//
// A flat sum costs one more pass over the bucket than adding inside the product that makes a piece; in return
// gradients of ranks and of micro-steps are added in the same order at all stages.
//
//===---------------------------------------------------------------------------===//
#include "ShardedStep.h"
#include "Support/FoldAccumulators.h"
#include "ds/Dialect/Work.h"

#include <bit>

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// The input of a conversion to a wider type; `value` itself otherwise.
static Value beforeWidening(Value value) {
  auto convert = value.getDefiningOp<ConvertOp>();
  if (!convert)
    return value;
  unsigned from = tensorType(convert.getInput()).getElementTypeBitWidth();
  return from < tensorType(value).getElementTypeBitWidth() ? convert.getInput() : value;
}

static Type elementOf(Value value) { return tensorType(value).getElementType(); }

namespace {
/// What one member's gradient is made of in one segment.
struct GradientParts {
  Value gradient; ///< of this micro-batch, in the type that ranks exchange
  Type sumType;   ///< element type in which it is added to what was kept
};

/// The parts of sums that were taken apart. Two parameters can have one: biases of layers whose results are
/// added have the same gradient, and what is the same is there once.
using KnownParts = DenseMap<AccumulateOp, GradientParts>;
} // namespace

/// Takes the gradient of the micro-batch out of `total`, the sum of it and of what `kept` holds; a null
/// `kept` is nothing. The op that forms the sum lets go of its operands: flat ones take its place.
static FailureOr<GradientParts> splitGradient(Value total, Value kept, KnownParts &known) {
  auto op = total.getDefiningOp<AccumulateOp>();
  if (auto parts = known.find(op); op && parts != known.end())
    return parts->second;
  if ((op ? Value(op.getKept()) : Value()) != kept)
    return failure();
  if (!op)
    return GradientParts{beforeWidening(total), elementOf(total)};
  Value gradient = op.getGradient();
  Type element = elementOf(total), own = elementOf(gradient);
  op->setOperands({});
  if (kept && element.getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth())
    return known[op] = GradientParts{beforeWidening(gradient), own};
  WorkListener listener(op);
  OpBuilder builder(op->getContext(), &listener);
  builder.setInsertionPoint(op);
  Emitter emit(builder, op.getLoc());
  return known[op] = GradientParts{beforeWidening(makeIn(emit, gradient, element)), element};
}

namespace {
/// The gradients of one bucket in one segment.
class BucketGradient {
public:
  BucketGradient(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket)
      : step(step), segment(segment), bucket(bucket), builder(segment.getTerminator()),
        emit(builder, bucket.op.getLoc()) {}

  /// Finds the pieces; `totals` are the values that the members' states or updates get, sums with what their
  /// states of `slot` hold where the segment reads those.
  LogicalResult split(ArrayRef<Value> totals, StringRef slot, KnownParts &known);
  /// The sum of what is kept and this micro-step's gradient: a rank's part where gradients are divided.
  Value accumulate(StateOp kept);
  /// What the update reads: of all ranks, a rank's part where the optimizer is divided.
  Value reduce(Value local);
  /// `own` of a stage and what another makes of the same parameters, added up in the order of stages: both
  /// get the same bits.
  Value addTied(Value own, int64_t other);

private:
  Value join();
  Value zeros(int64_t count);
  Value exchange(Value flat, bool isScattered);
  Value addUp(Value value, rt::AxisSet axes);
  Value scatter(Value flat);

  ShardedStep &step;
  SegmentStates &segment;
  ShardedBucket &bucket;
  OpBuilder builder;
  Emitter emit;
  SmallVector<Value> pieces;
  Type exchanged, sumType; ///< element types of the pieces, and of sums
};
} // namespace

LogicalResult BucketGradient::split(ArrayRef<Value> totals, StringRef slot, KnownParts &known) {
  Operation *last = nullptr;
  for (auto [member, total] : llvm::zip_equal(bucket.members, totals)) {
    StateOp state = step.lookup(member, slot);
    Value kept = state ? segment.find(state.getSymNameAttr()) : Value();
    FailureOr<GradientParts> parts = splitGradient(total, kept, known);
    if (failed(parts))
      return member.emitOpError("expects its gradient in @")
             << segment.getFunction().getSymName() << " to be a ds.accumulate"
             << (kept ? " into @" + state.getSymName() : Twine(" into nothing")).str();
    pieces.push_back(parts->gradient);
    last = laterOf(last, parts->gradient.getDefiningOp());
    sumType = parts->sumType;
    exchanged = exchanged && exchanged != elementOf(parts->gradient) ? sumType : elementOf(parts->gradient);
  }
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(&segment.getBody());
  return success();
}

Value BucketGradient::zeros(int64_t count) {
  return emit.splat(RankedTensorType::get(count, exchanged), 0.0);
}

/// The pieces side by side, with zeros between them.
Value BucketGradient::join() {
  SmallVector<Value> parts;
  int64_t end = 0, elements = bucket.getElements();
  for (auto [piece, offset] : llvm::zip_equal(pieces, bucket.op.getOffsets())) {
    if (offset > end)
      parts.push_back(zeros(offset - end));
    int64_t count = tensorType(piece).getNumElements();
    parts.push_back(emit.reshape(emit.convert(piece, exchanged), {count}));
    end = offset + count;
  }
  if (end < elements)
    parts.push_back(zeros(elements - end));
  if (parts.size() == 1)
    return parts.front();
  return builder.create<ConcatOp>(emit.getLoc(), RankedTensorType::get(elements, exchanged), parts,
                                  /*dim=*/0);
}

/// Adds up the ranks' tensors, in the type that the configuration asks for.
Value BucketGradient::exchange(Value flat, bool isScattered) {
  Type own = elementOf(flat), wanted = own;
  if (std::optional<FloatKind> kind = step.getOptions().communicationType)
    wanted = toFloatType(own.getContext(), *kind);
  Value sent = emit.convert(flat, wanted);
  return emit.convert(isScattered ? scatter(sent) : addUp(sent, bucket.addends), own);
}

/// The sum over ranks along `axes`.
Value BucketGradient::addUp(Value value, rt::AxisSet axes) {
  if (step.countRanks(axes) == 1)
    return value;
  return builder.create<AllReduceOp>(emit.getLoc(), value.getType(), ReduceKind::Sum, value,
                                     step.nameAxes(axes), Payload::Bucket);
}

/// Whether parts along `outer`, cut along `inner`, lie as parts along both do.
static bool areNested(rt::AxisSet outer, rt::AxisSet inner) {
  return outer.isEmpty() || inner.isEmpty() ||
         static_cast<int>(std::bit_width(outer.bits())) <= std::countr_zero(inner.bits());
}

/// This rank's part of the sum. What can be is scattered first, so that the rest adds up parts. Along axes
/// that divide the bucket and have no addends, ranks have the same: each takes its part.
Value BucketGradient::scatter(Value flat) {
  rt::AxisSet scattered = bucket.addends & bucket.divided, same = bucket.divided - bucket.addends;
  if (!areNested(scattered, same)) {
    flat = addUp(flat, scattered);
    same = bucket.divided, scattered = {};
  }
  auto part = [&](rt::AxisSet axes) {
    RankedTensorType type = tensorType(flat);
    return type.clone({type.getNumElements() / step.countRanks(axes)});
  };
  if (step.countRanks(scattered) > 1)
    flat = builder.create<ReduceScatterOp>(emit.getLoc(), part(scattered), ReduceKind::Sum, flat,
                                           step.nameAxes(scattered), Payload::Bucket);
  if (step.countRanks(same) > 1)
    flat = builder.create<LocalShardOp>(emit.getLoc(), part(same), flat, step.nameAxes(same));
  return addUp(flat, bucket.addends - bucket.divided);
}

Value BucketGradient::accumulate(StateOp kept) {
  Value flat = join();
  if (bucket.dividesGradients)
    flat = exchange(flat, /*isScattered=*/true);
  flat = emit.convert(flat, sumType);
  return kept ? emit.add(emit.convert(segment.read(kept), sumType), flat) : flat;
}

Value BucketGradient::reduce(Value local) {
  return bucket.dividesGradients ? local : exchange(local, bucket.dividesOptimizer);
}

Value BucketGradient::addTied(Value own, int64_t other) {
  WorkListener listener;
  OpBuilder after(own.getContext(), &listener);
  after.setInsertionPointAfterValue(own);
  if (Operation *maker = own.getDefiningOp())
    listener.follow(maker, Work::Update);
  const AxesAttr axes = step.nameAxes(step.getShape().stages);
  // A stage updates when it has done its backward, and neither waits for the other to send first.
  after.create<SendOp>(emit.getLoc(), own, other, axes, Payload::Bucket, /*trained=*/false);
  Value sent =
      after.create<RecvOp>(emit.getLoc(), own.getType(), other, axes, Payload::Bucket, /*trained=*/false);
  const bool isFirst = SegmentAttr::of(segment.getFunction()).getStage() < other;
  return Emitter(after, emit.getLoc()).add(isFirst ? own : sent, isFirst ? sent : own);
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// The members' values that the segment gives to their gradient states.
static FailureOr<SmallVector<Value>> keptGradients(const ShardedStep &step, const SegmentStates &segment,
                                                   ShardedBucket &bucket, StringRef slot) {
  SmallVector<Value> totals;
  for (StateOp member : bucket.members) {
    StateOp state = step.lookup(member, slot);
    totals.push_back(state ? segment.findResult(state.getSymNameAttr()) : Value());
    if (!totals.back())
      return member.emitOpError("expects @")
             << segment.getFunction().getSymName() << " to keep its gradient, but got none";
  }
  return totals;
}

/// The slot of the members' gradient states; nothing where none is kept.
static std::optional<StringRef> gradientSlot(const ShardedBucket &bucket) {
  for (auto &entry : bucket.states)
    if (StateOp(entry.second).getRole() == Role::Gradient)
      return entry.first();
  return std::nullopt;
}

/// Micro-steps without update: gradients are kept.
static LogicalResult keepGradients(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket,
                                   KnownParts &known) {
  std::optional<StringRef> slot = gradientSlot(bucket);
  if (!slot)
    return bucket.members.front().emitOpError("expects a gradient state, but got none");
  FailureOr<SmallVector<Value>> totals = keptGradients(step, segment, bucket, *slot);
  if (failed(totals))
    return failure();
  StateOp first = step.lookup(bucket.members.front(), *slot);
  const bool adds = first && segment.find(first.getSymNameAttr());
  BucketGradient gradient(step, segment, bucket);
  if (failed(gradient.split(*totals, *slot, known)))
    return failure();
  StateOp kept = bucket.getState(*slot);
  Value sum = gradient.accumulate(adds ? kept : StateOp());
  OpBuilder builder(segment.getTerminator()->getContext());
  builder.setInsertionPointAfterValue(sum);
  segment.write(kept, Emitter(builder, sum.getLoc()).convert(sum, kept.getTensorType().getElementType()));
  return success();
}

/// The micro-step that updates: gradients are complete.
static FailureOr<Value> completeGradients(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket,
                                          KnownParts &known) {
  auto totals =
      llvm::map_to_vector(bucket.updates, [](UpdateOp update) -> Value { return update.getGradient(); });
  std::optional<StringRef> slot = gradientSlot(bucket);
  BucketGradient gradient(step, segment, bucket);
  if (failed(gradient.split(totals, slot.value_or(""), known)))
    return failure();
  Value total = gradient.reduce(gradient.accumulate(slot ? bucket.getState(*slot) : StateOp()));
  return bucket.tied ? gradient.addTied(total, *bucket.tied) : total;
}

LogicalResult mlir::ds::shardGradients(ShardedStep &step, SegmentStates &segment,
                                       SmallVectorImpl<Value> &totals) {
  KnownParts known;
  for (ShardedBucket &bucket : step.getBuckets()) {
    totals.push_back(Value());
    if (!bucket.isTrained() || segment.does(Work::Evaluation))
      continue;
    if (!segment.does(Work::Update)) {
      if (failed(keepGradients(step, segment, bucket, known)))
        return failure();
      continue;
    }
    FailureOr<Value> total = completeGradients(step, segment, bucket, known);
    if (failed(total))
      return failure();
    totals.back() = *total;
  }
  return success();
}
