//===- CollectiveOps.cpp - Verifiers and costs of collectives --------------------===//
#include "OpHelpers.h"
#include "ds/Dialect/Collectives.h"

using namespace mlir;
using namespace mlir::ds;

/// Number of ranks along `axes`; 1 where the module has no mesh, which no verified collective has.
static int64_t groupSize(Operation *op, AxesAttr axes) {
  MeshOp mesh = MeshOp::lookup(op);
  return mesh ? mesh.getSize(axes) : 1;
}

/// Bytes that a rank sends in `op`, a collective of at most one operand.
static int64_t sentBytes(CollectiveOpInterface op, AxesAttr axes) {
  if (op->getNumOperands() == 0)
    return 0;
  auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t element = llvm::divideCeil(input.getElementTypeBitWidth(), 8);
  return static_cast<int64_t>(traitsOf(op.getCollectiveKind())
                                  .sentBytes(input.getNumElements() * element, element, groupSize(op, axes)));
}

/// Verifies that the module's mesh has the axes, and that `full` is n parts like `shard` along dimension 0, n
/// being the size of a group.
static LogicalResult verifyParts(Operation *op, RankedTensorType shard, RankedTensorType full,
                                 AxesAttr axes) {
  if (failed(verifyAxes(op, axes.getNames())))
    return failure();
  int64_t ranks = groupSize(op, axes);
  SmallVector<int64_t> shape(shard.getShape());
  if (!shape.empty())
    shape.front() *= ranks;
  if (!shape.empty() && full == shard.clone(shape)) // C2.
    return success();
  return op->emitOpError("expects ") << ranks << " parts of " << shard << " along dimension 0, but got "
                                     << full;
}

/// Verifies that the module's mesh has the axes, and that `index` is below the size of a group.
static LogicalResult verifyPeer(Operation *op, int64_t index, AxesAttr axes) {
  if (failed(verifyAxes(op, axes.getNames())))
    return failure();
  int64_t ranks = groupSize(op, axes);
  if (index < ranks) // C2.
    return success();
  InFlightDiagnostic error = op->emitOpError("expects an index below ") << ranks << " along ";
  llvm::interleaveComma(axes.getNames(), error, [&](StringAttr name) { error << name.getValue(); });
  return error << ", but got " << index;
}

//===----------------------------------------------------------------------===//
// AllGatherOp, ReduceScatterOp, AllReduceOp
//===----------------------------------------------------------------------===//

LogicalResult AllGatherOp::verify() {
  return verifyParts(*this, getShard().getType(), getResult().getType(), getAxes());
}

CollectiveKind AllGatherOp::getCollectiveKind() { return CollectiveKind::AllGather; }

int64_t AllGatherOp::getFlops() { return 0; }

int64_t AllGatherOp::getSentBytes() { return sentBytes(*this, getAxes()); }

LogicalResult ReduceScatterOp::verify() {
  return verifyParts(*this, getResult().getType(), getFull().getType(), getAxes());
}

CollectiveKind ReduceScatterOp::getCollectiveKind() { return CollectiveKind::ReduceScatter; }

int64_t ReduceScatterOp::getFlops() {
  return (groupSize(*this, getAxes()) - 1) * getResult().getType().getNumElements();
}

int64_t ReduceScatterOp::getSentBytes() { return sentBytes(*this, getAxes()); }

LogicalResult AllReduceOp::verify() { return verifyAxes(*this, getAxes().getNames()); }

CollectiveKind AllReduceOp::getCollectiveKind() { return CollectiveKind::AllReduce; }

/// Elements of the part that one rank combines.
static int64_t partOf(AllReduceOp op) {
  return llvm::divideCeil(op.getResult().getType().getNumElements(), groupSize(op, op.getAxes()));
}

int64_t AllReduceOp::getFlops() { return (groupSize(*this, getAxes()) - 1) * partOf(*this); }

int64_t AllReduceOp::getSentBytes() { return sentBytes(*this, getAxes()); }

//===----------------------------------------------------------------------===//
// CollectiveBroadcastOp, AllToAllOp
//===----------------------------------------------------------------------===//

LogicalResult CollectiveBroadcastOp::verify() { return verifyPeer(*this, getRoot(), getAxes()); }

CollectiveKind CollectiveBroadcastOp::getCollectiveKind() { return CollectiveKind::Broadcast; }

int64_t CollectiveBroadcastOp::getFlops() { return 0; }

int64_t CollectiveBroadcastOp::getSentBytes() { return sentBytes(*this, getAxes()); }

LogicalResult AllToAllOp::verify() {
  if (failed(verifyAxes(*this, getAxes().getNames())))
    return failure();
  RankedTensorType type = getInput().getType();
  int64_t ranks = groupSize(*this, getAxes());
  if (type.getRank() > 0 && type.getDimSize(0) % ranks == 0) // C2.
    return success();
  return emitOpError("expects a dimension 0 that ") << ranks << " ranks divide, but got " << type;
}

CollectiveKind AllToAllOp::getCollectiveKind() { return CollectiveKind::AllToAll; }

int64_t AllToAllOp::getFlops() { return 0; }

int64_t AllToAllOp::getSentBytes() { return sentBytes(*this, getAxes()); }

//===----------------------------------------------------------------------===//
// SendOp, RecvOp
//===----------------------------------------------------------------------===//

LogicalResult SendOp::verify() { return verifyPeer(*this, getPeer(), getAxes()); }

CollectiveKind SendOp::getCollectiveKind() { return CollectiveKind::Send; }

int64_t SendOp::getFlops() { return 0; }

int64_t SendOp::getSentBytes() { return sentBytes(*this, getAxes()); }

LogicalResult RecvOp::verify() { return verifyPeer(*this, getPeer(), getAxes()); }

CollectiveKind RecvOp::getCollectiveKind() { return CollectiveKind::Recv; }

int64_t RecvOp::getFlops() { return 0; }

int64_t RecvOp::getSentBytes() { return sentBytes(*this, getAxes()); }

//===----------------------------------------------------------------------===//
// LocalShardOp, AxisIndexOp
//===----------------------------------------------------------------------===//

LogicalResult LocalShardOp::verify() {
  return verifyParts(*this, getResult().getType(), getFull().getType(), getAxes());
}

LogicalResult AxisIndexOp::verify() { return verifyAxes(*this, getAxes().getNames()); }
