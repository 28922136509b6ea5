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

using namespace mlir;
using namespace mlir::ds;

/// The input of a conversion to a wider type; `value` itself otherwise.
static Value beforeWidening(Value value) {
  auto convert = value.getDefiningOp<ConvertOp>();
  if (!convert)
    return value;
  unsigned from = tensorType(convert.getInput()).getElementTypeBitWidth();
  return from < tensorType(value).getElementTypeBitWidth() ? convert.getInput() : value;
}

static Type elementOf(Value value) { return tensorType(value).getElementType(); }

FailureOr<GradientParts> mlir::ds::splitGradient(Value total, BlockArgument kept) {
  if (!kept)
    return GradientParts{beforeWidening(total), elementOf(total)};
  auto isKept = [&](Value value) {
    auto convert = value.getDefiningOp<ConvertOp>();
    return value == kept || (convert && convert.getInput() == kept);
  };
  // The sum may be formed in a wider type than it is kept in.
  auto rounded = total.getDefiningOp<ConvertOp>();
  for (Value sum : {total, rounded ? rounded.getInput() : Value()}) {
    if (!sum)
      continue;
    if (auto add = sum.getDefiningOp<AddOp>()) {
      if (isKept(add.getLhs()))
        return GradientParts{beforeWidening(add.getRhs()), elementOf(sum)};
      if (isKept(add.getRhs()))
        return GradientParts{beforeWidening(add.getLhs()), elementOf(sum)};
    }
    if (unfoldAccumulator(sum, isKept))
      return GradientParts{sum, elementOf(sum)};
  }
  return failure();
}

namespace {
/// The gradients of one bucket in one segment.
class BucketGradient {
public:
  BucketGradient(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket)
      : step(step), segment(segment), bucket(bucket), builder(segment.getTerminator()),
        emit(builder, bucket.op.getLoc()) {}

  /// Finds the pieces; `totals` are the values that the members' states or updates get.
  LogicalResult split(ArrayRef<Value> totals, StringRef suffix);
  /// The sum of what is kept and this micro-step's gradient: a rank's part where gradients are divided.
  Value accumulate(StateOp kept);
  /// What the update reads: of all ranks, a rank's part where the optimizer is divided.
  Value reduce(Value local);

private:
  Value join();
  Value zeros(int64_t count);
  Value exchange(Value flat, bool isScattered);

  ShardedStep &step;
  SegmentStates &segment;
  ShardedBucket &bucket;
  OpBuilder builder;
  Emitter emit;
  SmallVector<Value> pieces;
  Type exchanged, sumType; ///< element types of the pieces, and of sums
};
} // namespace

LogicalResult BucketGradient::split(ArrayRef<Value> totals, StringRef suffix) {
  Operation *last = nullptr;
  for (auto [member, total] : llvm::zip_equal(bucket.members, totals)) {
    auto name = StringAttr::get(segment.getTerminator()->getContext(), member.getSymName() + suffix);
    FailureOr<GradientParts> parts = splitGradient(total, segment.find(name));
    if (failed(parts))
      return member.emitOpError("expects its gradient in @")
             << segment.getFunction().getSymName() << " to be the sum of @" << name.getValue()
             << " and the micro-step's";
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
  Type own = elementOf(flat), wanted = step.getOptions().communicationType;
  Value sent = emit.convert(flat, wanted ? wanted : own), received;
  if (isScattered)
    received = builder.create<ReduceScatterOp>(
        emit.getLoc(), tensorType(sent).clone({bucket.getElements() / step.getRanks()}), ReduceKind::Sum,
        sent, MeshAxis::Data);
  else
    received =
        builder.create<AllReduceOp>(emit.getLoc(), sent.getType(), ReduceKind::Sum, sent, MeshAxis::Data);
  return emit.convert(received, own);
}

Value BucketGradient::accumulate(StateOp kept) {
  Value flat = join();
  if (step.dividesGradients())
    flat = exchange(flat, /*isScattered=*/true);
  flat = emit.convert(flat, sumType);
  return kept ? emit.add(emit.convert(segment.read(kept), sumType), flat) : flat;
}

Value BucketGradient::reduce(Value local) {
  return step.dividesGradients() ? local : exchange(local, step.dividesOptimizer());
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// The members' values that the segment gives to their gradient states.
static FailureOr<SmallVector<Value>> keptGradients(const SegmentStates &segment, ShardedBucket &bucket,
                                                   StringRef suffix) {
  SmallVector<Value> totals;
  for (StateOp member : bucket.members) {
    auto name = StringAttr::get(member.getContext(), member.getSymName() + suffix);
    totals.push_back(segment.findResult(name));
    if (!totals.back())
      return member.emitOpError("expects @")
             << segment.getFunction().getSymName() << " to keep its gradient, but got none";
  }
  return totals;
}

/// The suffix of the members' gradient states; nothing where none is kept.
static std::optional<StringRef> gradientSuffix(const ShardedBucket &bucket) {
  for (auto &entry : bucket.states)
    if (StateOp(entry.second).getRole() == Role::Gradient)
      return entry.first();
  return std::nullopt;
}

/// First and middle micro-steps: gradients are kept.
static LogicalResult keepGradients(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket) {
  std::optional<StringRef> suffix = gradientSuffix(bucket);
  if (!suffix)
    return bucket.members.front().emitOpError("expects a gradient state, but got none");
  FailureOr<SmallVector<Value>> totals = keptGradients(segment, bucket, *suffix);
  BucketGradient gradient(step, segment, bucket);
  if (failed(totals) || failed(gradient.split(*totals, *suffix)))
    return failure();
  StateOp kept = bucket.getState(*suffix);
  bool accumulates = segment.getKind() == SegmentKind::Middle;
  Value sum = gradient.accumulate(accumulates ? kept : StateOp());
  OpBuilder builder(segment.getTerminator()->getContext());
  builder.setInsertionPointAfterValue(sum);
  segment.write(kept, Emitter(builder, sum.getLoc()).convert(sum, kept.getTensorType().getElementType()));
  return success();
}

/// The last micro-step: gradients are complete.
static FailureOr<Value> completeGradients(ShardedStep &step, SegmentStates &segment, ShardedBucket &bucket) {
  auto totals =
      llvm::map_to_vector(bucket.updates, [](UpdateOp update) -> Value { return update.getGradient(); });
  std::optional<StringRef> suffix = gradientSuffix(bucket);
  BucketGradient gradient(step, segment, bucket);
  if (failed(gradient.split(totals, suffix.value_or(".grad"))))
    return failure();
  return gradient.reduce(gradient.accumulate(suffix ? bucket.getState(*suffix) : StateOp()));
}

LogicalResult mlir::ds::shardGradients(ShardedStep &step, SegmentStates &segment,
                                       SmallVectorImpl<Value> &totals) {
  SegmentKind kind = segment.getKind();
  for (ShardedBucket &bucket : step.getBuckets()) {
    totals.push_back(Value());
    if (!bucket.isTrained() || kind == SegmentKind::Evaluation)
      continue;
    if (kind != SegmentKind::Last) {
      if (failed(keepGradients(step, segment, bucket)))
        return failure();
      continue;
    }
    FailureOr<Value> total = completeGradients(step, segment, bucket);
    if (failed(total))
      return failure();
    totals.back() = *total;
  }
  return success();
}
