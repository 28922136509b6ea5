//===- ShardParameters.cpp - Layers read their parameters from buckets ------------===//
//
// A member is a window of its bucket: a slice and a reshape, which cost nothing in memory. Where the bucket
// is divided, it is gathered once for the layers of forward and once more for backward, so that the gathered
// copy need not live in between; which of the two gathers is worth its time is for the scheduler to say.
//
// With a secondary partition the first gather of a step alone is along all axes that divide the bucket, so
// that it crosses nodes; its result leaves a rank's part of a node's copy in a state, from which all other
// gathers are made inside a node:
//
//   dp.node = 2, dp.local = 2, parts of ranks 0 to 3:   a | b | c | d
//   gathered along dp:                                  abcd on all
//   kept, along dp.local:                               ab | cd | ab | cd
//   gathered along dp.local:                            abcd on all
//
// A gather along dp.node first would leave a and c on ranks 0 and 2, and no gather along dp.local puts b
// between.
//
// What forward makes of parameters alone (a transposition, a repeated bias) is recomputed for backward, from
// backward's own gather: read across, it would keep forward's copy alive.
//
//===---------------------------------------------------------------------------===//
#include "ShardedStep.h"
#include "Support/PostOrder.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;

/// Whether a step runs `func` before all others.
static bool isFirstOfStep(func::FuncOp func) {
  SmallVector<func::FuncOp> segments = getSegments(func->getParentOfType<ModuleOp>());
  return !segments.empty() && segments.front() == func;
}

namespace {
class ParameterReader {
public:
  ParameterReader(ShardedStep &step, SegmentStates &segment)
      : step(step), segment(segment), isFirst(isFirstOfStep(segment.getFunction())) {}

  void run();

private:
  /// Uses of one member on one side.
  using Uses = SmallVector<OpOperand *>;

  void repeatForBackward();
  void findOfParameters();
  Value repeat(Value value, OpBuilder &builder);
  Uses usesOf(StateOp member, std::optional<bool> inForward) const;
  void readBucket(ShardedBucket &bucket, std::optional<bool> inForward);
  Value readWhole(ShardedBucket &bucket, OpBuilder &builder);
  void dropUnread(ShardedBucket &bucket);

  ShardedStep &step;
  SegmentStates &segment;
  const bool isFirst;              ///< of a step's segments
  DenseSet<Value> divided;         ///< arguments that will be gathered
  DenseSet<Value> ofParameters;    ///< what forward makes of them alone
  DenseMap<Value, Value> repeated; ///< forward's value -> backward's own
};
} // namespace

/// Notes the values that cheap ops of forward make of divided parameters and constants, and of nothing else.
void ParameterReader::findOfParameters() {
  auto isConstant = [](Value operand) {
    return operand.getDefiningOp() && operand.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
  };
  auto fits = [&](Value operand) {
    return isConstant(operand) || divided.contains(operand) || ofParameters.contains(operand);
  };
  for (Operation &op : segment.getBody().without_terminator()) {
    auto fusable = dyn_cast<FusableOpInterface>(op);
    const bool isCheap = fusable && fusable.getFusionKind() != FusionKind::Reduction;
    if (isForward(&op) && isCheap && !llvm::all_of(op.getOperands(), isConstant) &&
        llvm::all_of(op.getOperands(), fits))
      ofParameters.insert(op.getResults().begin(), op.getResults().end());
  }
}

Value ParameterReader::repeat(Value value, OpBuilder &builder) {
  auto isMade = [&](Value next) { return next.getDefiningOp() && isForward(next.getDefiningOp()); };
  visitPostOrder(
      value, [&](Value next) { return isMade(next) && !repeated.contains(next); },
      [&](Value next) {
        Operation *op = next.getDefiningOp();
        IRMapping mapping;
        for (Value operand : op->getOperands())
          mapping.map(operand, isMade(operand) ? repeated.lookup(operand) : operand);
        Operation *clone = builder.clone(*op, mapping);
        setWork(clone, Work::Backward);
        for (auto [from, to] : llvm::zip_equal(op->getResults(), clone->getResults()))
          repeated[from] = to;
      });
  return isMade(value) ? repeated.lookup(value) : value;
}

void ParameterReader::repeatForBackward() {
  for (ShardedBucket &bucket : step.getBuckets())
    if (bucket.dividesParameters)
      for (StateOp member : bucket.members)
        if (BlockArgument argument = segment.find(member.getSymNameAttr()))
          divided.insert(argument);
  findOfParameters();
  for (Operation &op : llvm::make_early_inc_range(segment.getBody().without_terminator())) {
    if (isForward(&op))
      continue;
    OpBuilder builder(&op);
    for (OpOperand &operand : op.getOpOperands())
      if (ofParameters.contains(operand.get()))
        operand.set(repeat(operand.get(), builder));
  }
}

/// Where layers of forward (true), of backward (false) or of both read `member`.
ParameterReader::Uses ParameterReader::usesOf(StateOp member, std::optional<bool> inForward) const {
  Uses uses;
  BlockArgument argument = segment.find(member.getSymNameAttr());
  if (!argument)
    return uses;
  for (OpOperand &use : argument.getUses())
    if (!isa<UpdateOp>(use.getOwner()) &&
        inForward.value_or(isForward(use.getOwner())) == isForward(use.getOwner()))
      uses.push_back(&use);
  return uses;
}

/// The op of the first use.
static Operation *firstOwner(ArrayRef<OpOperand *> uses) {
  Operation *first = nullptr;
  for (OpOperand *use : uses)
    first = earlierOf(first, use->getOwner());
  return first;
}

/// The whole bucket, from where it is divided last. Evaluation does not know what is left of the step before.
Value ParameterReader::readWhole(ShardedBucket &bucket, OpBuilder &builder) {
  StateOp state = bucket.getState("");
  Location loc = builder.getInsertionPoint()->getLoc();
  if (!bucket.dividesParameters)
    return segment.read(state);
  auto gather = [&](Value part, ::ds::rt::AxisSet axes) -> Value {
    return builder.create<AllGatherOp>(loc, state.getTensorType(), part, step.nameAxes(axes),
                                       Payload::Parameter);
  };
  if (!bucket.secondary || segment.does(Work::Evaluation))
    return gather(segment.read(state), bucket.divided);
  if (Value part = segment.findResult(bucket.secondary.getSymNameAttr())) // of this segment's own
    return gather(part, bucket.near);
  if (!isFirst)
    return gather(segment.read(bucket.secondary), bucket.near);
  Value whole = gather(segment.read(state), bucket.divided);
  segment.write(bucket.secondary, builder.create<LocalShardOp>(loc, bucket.secondary.getLocalType(), whole,
                                                               step.nameAxes(bucket.near)));
  return whole;
}

void ParameterReader::readBucket(ShardedBucket &bucket, std::optional<bool> inForward) {
  SmallVector<Uses> uses =
      llvm::map_to_vector(bucket.members, [&](StateOp member) { return usesOf(member, inForward); });
  Operation *first = nullptr;
  for (const Uses &ofMember : uses)
    first = earlierOf(first, firstOwner(ofMember));
  if (!first)
    return;
  WorkListener listener(first);
  OpBuilder builder(first, &listener);
  Value full = readWhole(bucket, builder);
  for (auto [member, offset, ofMember] : llvm::zip_equal(bucket.members, bucket.op.getOffsets(), uses)) {
    if (ofMember.empty())
      continue;
    RankedTensorType type = StateOp(member).getLocalType();
    builder.setInsertionPoint(firstOwner(ofMember));
    listener.follow(firstOwner(ofMember));
    Emitter emit(builder, firstOwner(ofMember)->getLoc());
    Value window = builder.create<SliceOp>(emit.getLoc(), type.clone({type.getNumElements()}), full,
                                           ArrayRef<int64_t>{offset}, ArrayRef<int64_t>{1});
    Value shaped = emit.reshape(window, type.getShape());
    for (OpOperand *use : ofMember)
      use->set(shaped);
  }
}

/// Takes back a secondary partition that no other gather of the step reads: that of what a single
/// micro-step's forward alone needs, as an embedding.
void ParameterReader::dropUnread(ShardedBucket &bucket) {
  if (!bucket.secondary || step.getOptions().accumulation > 1 || !isFirst)
    return;
  Value part = segment.findResult(bucket.secondary.getSymNameAttr());
  if (!part || !part.hasOneUse())
    return;
  segment.drop(bucket.secondary.getSymNameAttr());
  std::exchange(bucket.secondary, {}).erase();
}

void ParameterReader::run() {
  repeatForBackward();
  for (ShardedBucket &bucket : step.getBuckets()) {
    if (bucket.dividesParameters) {
      readBucket(bucket, true);
      readBucket(bucket, false);
      dropUnread(bucket);
    } else {
      readBucket(bucket, std::nullopt);
    }
    for (StateOp member : bucket.members)
      segment.drop(member.getSymNameAttr());
  }
}

void mlir::ds::shardParameters(ShardedStep &step, SegmentStates &segment) {
  ParameterReader(step, segment).run();
}
