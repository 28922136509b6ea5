//===- ShardScalars.cpp - Losses, generators and buffers on many ranks ------------===//
//
// N ranks that read other samples are to equal one rank that takes N times the micro-steps: micro-step g of
// rank r is that rank's micro-step g * N + r. Losses become means over ranks. A generator's counter goes on
// by N in each micro-step, and a rank reads it r further; all ranks keep the same counter. Buffers that
// forward updates from data become the mean of what the ranks make of them: no order of ranks is the right
// one.
//
//===---------------------------------------------------------------------------===//
#include "ShardedStep.h"

#include "ds/Dialect/Work.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// The mean of a value over the ranks that read other samples, for the state of that name, by which the
/// exchange is called.
static Value averageOverRanks(OpBuilder &builder, StringAttr state, Value value, const ShardedStep &step) {
  Location loc = state ? Location(NameLoc::get(state, value.getLoc())) : value.getLoc();
  Emitter emit(builder, loc);
  const ::ds::rt::AxisSet samples = step.getShape().samples;
  Value sum = builder.create<AllReduceOp>(emit.getLoc(), value.getType(), ReduceKind::Sum, value,
                                          step.nameAxes(samples), Payload::Statistic);
  return emit.scale(sum, 1.0 / step.countRanks(samples));
}

/// Forms the means that the segment asks for.
static void averageLosses(ShardedStep &step, SegmentStates &segment) {
  for (RankMeanOp op : llvm::make_early_inc_range(segment.getBody().getOps<RankMeanOp>())) {
    StringAttr state;
    for (OpOperand &use : op.getResult().getUses())
      if (use.getOwner() == segment.getTerminator())
        state = segment.nameOfResult(use.getOperandNumber());
    WorkListener listener(op); // of forward, or of the gradient of a mean
    OpBuilder builder(op, &listener);
    op.getResult().replaceAllUsesWith(averageOverRanks(builder, state, op.getValue(), step));
    op.erase();
  }
}

/// True for uses as the generator of a random op.
static bool isGenerator(OpOperand &use) {
  auto random = dyn_cast<RandomOpInterface>(use.getOwner());
  return random && random.getGenerator() == use.get();
}

/// (0, r) in rank r of those that read other samples. The table of all ranks' indices and this rank's part of
/// it: what differs between ranks is where they read, not what they compute.
static Value rankOffset(Emitter &emit, RankedTensorType type, const ShardedStep &step) {
  OpBuilder &builder = emit.getBuilder();
  const ::ds::rt::AxisSet samples = step.getShape().samples;
  auto ofAll = RankedTensorType::get(step.countRanks(samples), type.getElementType());
  Value indices = builder.create<IotaOp>(emit.getLoc(), ofAll, /*dim=*/0, /*start=*/0, /*step=*/1);
  Value own = builder.create<LocalShardOp>(emit.getLoc(), ofAll.clone({1}), indices, step.nameAxes(samples));
  Value index = emit.broadcast(emit.reshape(own, {}), {}, type.getShape());
  return emit.mul(index, builder.create<IotaOp>(emit.getLoc(), type, /*dim=*/0, /*start=*/0, /*step=*/1));
}

/// Lets a rank draw what one rank would draw for the same samples. Fails where the counter does not simply
/// go on.
static LogicalResult shardGenerator(ShardedStep &step, SegmentStates &segment, BlockArgument generator) {
  StateOp state = step.lookup(segment.nameOf(generator));
  OpBuilder builder = OpBuilder::atBlockBegin(&segment.getBody());
  Emitter emit(builder, segment.getFunction().getLoc());
  Value own = emit.add(generator, rankOffset(emit, tensorType(generator), step));
  generator.replaceUsesWithIf(own, isGenerator);
  Value next = segment.findResult(state.getSymNameAttr());
  if (!next)
    return success();
  auto advance = next.getDefiningOp<AdvanceOp>();
  if (!advance || advance.getGenerator() != generator)
    return state.emitOpError("expects a generator that ds.advance moves on in @")
           << segment.getFunction().getSymName();
  advance.setBy(advance.getBy() * step.countRanks(step.getShape().samples));
  return success();
}

/// True when `value` depends on an input or on what else differs between ranks.
static bool dependsOnData(const SegmentStates &segment, Value value) {
  llvm::SetVector<Value> slice;
  slice.insert(value);
  for (unsigned index = 0; index < slice.size(); ++index) {
    if (Operation *op = slice[index].getDefiningOp()) {
      if (isa<LocalShardOp>(op))
        return true;
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (!collective || collective.getCarries() != Payload::Statistic) // along tp, layers exchange data
        slice.insert(op->operand_begin(), op->operand_end());
    } else if (!segment.nameOf(cast<BlockArgument>(slice[index]))) {
      return true;
    }
  }
  return false;
}

static LogicalResult averageBuffers(ShardedStep &step, SegmentStates &segment) {
  unsigned numAveraged = 0;
  for (unsigned index = 0; index < segment.getNumResults(); ++index) {
    StateOp state = step.lookup(segment.nameOfResult(index));
    Value value = segment.getTerminator()->getOperand(index);
    if (!state || state.getRole() != Role::Buffer || !dependsOnData(segment, value))
      continue;
    if (!isFloatTensor(value))
      return state.emitOpError("expects a buffer that ranks agree on, but @")
             << segment.getFunction().getSymName() << " gives it integers that depend on the data";
    OpBuilder builder(segment.getTerminator());
    segment.write(state, averageOverRanks(builder, state.getSymNameAttr(), value, step));
    ++numAveraged;
  }
  if (numAveraged > 0 && SegmentAttr::of(segment.getFunction()).does(Work::Update)) // once of a step
    segment.getFunction().emitWarning()
        << "updates " << numAveraged
        << " buffers from its data, such as the statistics of batch norms: each rank's from its "
        << "own samples, of which all keep the mean; \"sync_batch_norm\": true lets batch norms read those "
           "of all ranks";
  return success();
}

LogicalResult mlir::ds::shardScalars(ShardedStep &step, SegmentStates &segment) {
  if (step.countRanks(step.getShape().samples) == 1) {
    for (RankMeanOp op : llvm::make_early_inc_range(segment.getBody().getOps<RankMeanOp>())) {
      op.getResult().replaceAllUsesWith(op.getValue());
      op.erase();
    }
    return success();
  }
  averageLosses(step, segment);
  SmallVector<BlockArgument> arguments(segment.getBody().getArguments());
  for (BlockArgument argument : arguments)
    if (segment.nameOf(argument) && llvm::any_of(argument.getUses(), isGenerator))
      if (failed(shardGenerator(step, segment, argument)))
        return failure();
  return averageBuffers(step, segment);
}
