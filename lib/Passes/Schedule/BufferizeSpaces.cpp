//===- BufferizeSpaces.cpp - Buffers for what lies in other spaces ------------------===//
//
// A store is made in the place of the state that it becomes, and otherwise in memory of its own in its space;
// a load in the device's memory. Both are copies on a stream of their own: what computes goes on beside them.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"

using namespace mlir;
using namespace mlir::ds;

void FunctionBufferizer::transfer(Value from, Value to, Location loc) {
  bool isStorage = bufferType(from).getSpace() == Space::Nvme || bufferType(to).getSpace() == Space::Nvme;
  builder.create<TransferOp>(loc, from, to, isStorage ? StreamKind::Storage : StreamKind::HostCopy);
}

void FunctionBufferizer::bufferizeStore(StoreOp op) {
  Value source = toContiguous(buffers.at(op.getValue()), op.getLoc());
  Destination destination = findDestination(op.getResult());
  Value target = destination ? *destination
                             : allocate(op.getValue().getType(), categoryOf(op.getValue()), op.getLoc(),
                                        op.getResult().getType().getSpace());
  transfer(source, target, op.getLoc());
  bind(op.getResult(), target);
}

void FunctionBufferizer::bufferizeLoad(LoadOp op) {
  Value target = makeBuffer(op.getResult());
  if (!bufferType(target).isContiguous())
    target = allocate(op.getResult().getType(), categoryOf(op.getResult()), op.getLoc());
  transfer(buffers.at(op.getStored()), target, op.getLoc());
  bind(op.getResult(), target);
}
