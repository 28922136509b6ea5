//===- BufferizeCollectives.cpp - Buffers for what ranks do together -------------===//
//
// A gather into a state happens in the state's place, and this rank's part of it is made there; another one
// gets memory of its own, from which the layers read. What a reduction sums up is made in its window of one
// flat buffer. Nothing is copied on the way to a collective or back, unless its operand is no packed tensor.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"

#include "ds/Dialect/Collectives.h"

using namespace mlir;
using namespace mlir::ds;

/// The stream of a collective: what brings values here must not queue up behind what sends gradients away.
static StreamKind streamCarrying(Payload payload) {
  switch (payload) {
  case Payload::Bucket:
  case Payload::Statistic:
    return StreamKind::Reduce;
  case Payload::Parameter:
    return StreamKind::Gather;
  case Payload::Exchange:
    return StreamKind::Exchange;
  case Payload::Transfer:
    return StreamKind::Transfer;
  }
  llvm_unreachable("all payloads are listed");
}

Value FunctionBufferizer::placeCollective(CollectiveOpInterface op) {
  OpResult result = op->getResult(0);
  if (Destination destination = destinations.find(result))
    return *destination;
  bool mayShare = traitsOf(op.getCollectiveKind()).sharing == ::ds::rt::Sharing::Same;
  if (mayShare && table.diesAlone(op->getOpOperand(0)) &&
      bufferType(table.at(op->getOperand(0))).isContiguous())
    return table.at(op->getOperand(0));
  const bool isGradient = destinations.categoryOf(result) == AllocCategory::Gradients;
  return emitter.allocate(tensorType(result),
                          isGradient ? AllocCategory::Gradients : AllocCategory::Communication,
                          result.getLoc());
}

void FunctionBufferizer::bufferizeCollective(CollectiveOpInterface op) {
  SmallVector<Value> inputs, outputs;
  for (Value operand : op->getOperands())
    inputs.push_back(emitter.toContiguous(table.at(operand), op.getLoc()));
  for (OpResult result : op->getResults()) {
    Value buffer = placeCollective(op);
    if (!bufferType(buffer).isContiguous()) {
      buffer = emitter.allocate(tensorType(result), destinations.categoryOf(result), result.getLoc());
      emitter.hasCopied = true;
    }
    outputs.push_back(buffer);
    table.bind(result, buffer);
  }
  MLIRContext *context = func.getContext();
  std::optional<ReduceKind> reduction = op.getReduction();
  emitter.builder.create<CommunicateOp>(
      op.getLoc(), CollectiveKindAttr::get(context, op.getCollectiveKind()), inputs, outputs,
      reduction ? ReduceKindAttr::get(context, *reduction) : ReduceKindAttr(), op.getAxes(),
      emitter.builder.getI64IntegerAttr(op.getPeerIndex()), IntegerAttr(), Value(),
      StreamKindAttr::get(context, streamCarrying(op.getCarries())),
      PayloadAttr::get(context, op.getCarries()));
}

/// A window, but where it becomes a state: that has a copy at once, so that the whole need not be there until
/// the function ends.
void FunctionBufferizer::bufferizeLocalShard(LocalShardOp op) {
  Value whole = emitter.toContiguous(table.at(op.getFull()), op.getLoc());
  Value part = emitter.createView(whole,
                                  shardView(viewOf(bufferType(whole)), op.getResult().getType().getShape(),
                                            MeshOp::lookup(op), op.getAxes()),
                                  op.getLoc());
  FlatSymbolRefAttr state = becomesState(func, op.getResult());
  if (state &&
      destinations.mayReplaceState(state, op.getResult(), table.positionOf(op), table.ofState(state))) {
    emitter.copy(part, table.ofState(state), op.getLoc());
    part = table.ofState(state);
  }
  table.bind(op.getResult(), part);
}
