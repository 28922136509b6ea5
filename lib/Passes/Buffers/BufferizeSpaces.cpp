//===- BufferizeSpaces.cpp - Buffers for what lies in other spaces ------------------===//
//
// A store is made in the place of the state that it becomes, and otherwise in memory of its own in its space;
// a load in the device's memory. Both are copies on streams of their own, to the host and to the device: what
// computes goes on beside them, and each way beside the other.
//
//===---------------------------------------------------------------------------===//
#include "DyingOperands.h"
#include "FunctionBufferizer.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

// What a store or load gives has a type of its own only until the walk: see dissolveHostRegions.

void FunctionBufferizer::bufferizeStore(StoreOp op) {
  Value value = op->getOperand(0), result = op->getResult(0);
  Value source = emitter.toContiguous(table.at(value), op.getLoc());
  Destination destination = destinations.find(result);
  Value target = destination ? *destination : findVacated(op, table);
  if (!target)
    target = emitter.allocate(tensorType(value), destinations.categoryOf(value), op.getLoc(),
                              table.spaceOf(result));
  staged.transfer(source, target, op.getLoc());
  table.bind(result, target);
}

void FunctionBufferizer::bufferizeLoad(LoadOp op) {
  Value result = op->getResult(0);
  Value target = destinations.makeBuffer(result);
  if (!bufferType(target).isContiguous())
    target = emitter.allocate(tensorType(result), destinations.categoryOf(result), op.getLoc());
  staged.transfer(table.at(op->getOperand(0)), target, op.getLoc());
  table.bind(result, target);
}

// What the host computes on is moved whole: ds-split-updates has it come in pieces, where it may.
void FunctionBufferizer::bufferizeMove(MoveOp op) {
  Value source = table.at(op->getOperand(0)), result = op->getResult(0);
  if (table.spaceOf(result) == Space::Host) {
    Value target = emitter.allocate(tensorType(result), AllocCategory::Workspace, op.getLoc(), Space::Host);
    alignToUnit(target.getDefiningOp<AllocOp>());
    emitter.builder.create<TransferOp>(op.getLoc(), source, target);
    return table.bind(result, target);
  }
  auto place = source.getDefiningOp<AllocOp>(); // windows, and what lives on the host, begin anywhere
  if (!place) {
    source = emitter.toPrivate(source, op.getLoc());
    place = source.getDefiningOp<AllocOp>();
  }
  alignToUnit(place);
  Destination destination = destinations.find(result);
  Value target = destination ? *destination
                             : emitter.allocate(tensorType(result), destinations.categoryOf(result),
                                                op.getLoc(), Space::Nvme);
  emitter.builder.create<TransferOp>(op.getLoc(), source, target);
  table.bind(result, target);
}

/// What is presumed, and why, stays in memory of its own: readers are found by it.
void FunctionBufferizer::bufferizePresume(PresumeOp op) {
  Value truth = table.at(op.getTruth()), guess = table.at(op.getGuess()), wrong = table.at(op.getWrong());
  emitter.builder.create<PresumedOp>(op.getLoc(), truth, guess, wrong);
  table.bind(op.getResult(), truth);
  for (Value buffer : {truth, guess, wrong})
    table.keep(buffer);
}
