//===- CollectiveOps.cpp - Verifiers and costs of collectives --------------------===//
#include "OpHelpers.h"

using namespace mlir;
using namespace mlir::ds;

/// Number of ranks along `axis`; 1 where the module has no mesh, which no verified collective has.
static int64_t groupSize(Operation *op, MeshAxis axis) {
  MeshOp mesh = MeshOp::lookup(op);
  return mesh ? mesh.getSize(axis) : 1;
}

/// Bytes of one element.
static int64_t elementBytes(RankedTensorType type) { return (type.getElementTypeBitWidth() + 7) / 8; }

static int64_t bytesOf(RankedTensorType type) { return type.getNumElements() * elementBytes(type); }

/// Verifies that the module has a mesh (C1).
static LogicalResult verifyHasMesh(Operation *op) {
  if (MeshOp::lookup(op))
    return success();
  InFlightDiagnostic error = op->emitOpError("expects a mesh in its module, but got none");
  error.attachNote() << "declare one, as ds.mesh @mesh axes [dp = 2, tp = 1, pp = 1, sp = 1]";
  return error;
}

/// Verifies that the module has a mesh, and that `full` is n parts like `shard` along dimension 0, n being
/// the size of `axis`.
static LogicalResult verifyParts(Operation *op, RankedTensorType shard, RankedTensorType full,
                                 MeshAxis axis) {
  if (failed(verifyHasMesh(op)))
    return failure();
  int64_t ranks = groupSize(op, axis);
  SmallVector<int64_t> shape(shard.getShape());
  if (!shape.empty())
    shape.front() *= ranks;
  if (!shape.empty() && full == shard.clone(shape)) // C2.
    return success();
  return op->emitOpError("expects ") << ranks << " parts of " << shard << " along dimension 0, but got "
                                     << full;
}

/// Verifies that the module has a mesh, and that `index` is below the size of `axis`.
static LogicalResult verifyPeer(Operation *op, int64_t index, MeshAxis axis) {
  if (failed(verifyHasMesh(op)))
    return failure();
  int64_t ranks = groupSize(op, axis);
  if (index < ranks) // C2.
    return success();
  return op->emitOpError("expects an index below ")
         << ranks << " along axis " << stringifyMeshAxis(axis) << ", but got " << index;
}

//===----------------------------------------------------------------------===//
// AllGatherOp, ReduceScatterOp, AllReduceOp
//===----------------------------------------------------------------------===//

LogicalResult AllGatherOp::verify() {
  return verifyParts(*this, getShard().getType(), getResult().getType(), getAxis());
}

CollectiveKind AllGatherOp::getCollectiveKind() { return CollectiveKind::AllGather; }

int64_t AllGatherOp::getFlops() { return 0; }

int64_t AllGatherOp::getSentBytes() {
  return (groupSize(*this, getAxis()) - 1) * bytesOf(getShard().getType());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyParts(*this, getResult().getType(), getFull().getType(), getAxis());
}

CollectiveKind ReduceScatterOp::getCollectiveKind() { return CollectiveKind::ReduceScatter; }

int64_t ReduceScatterOp::getFlops() {
  return (groupSize(*this, getAxis()) - 1) * getResult().getType().getNumElements();
}

int64_t ReduceScatterOp::getSentBytes() {
  return (groupSize(*this, getAxis()) - 1) * bytesOf(getResult().getType());
}

LogicalResult AllReduceOp::verify() { return verifyHasMesh(*this); }

CollectiveKind AllReduceOp::getCollectiveKind() { return CollectiveKind::AllReduce; }

/// Elements of the part that one rank combines.
static int64_t partOf(AllReduceOp op) {
  return llvm::divideCeil(op.getResult().getType().getNumElements(), groupSize(op, op.getAxis()));
}

int64_t AllReduceOp::getFlops() { return (groupSize(*this, getAxis()) - 1) * partOf(*this); }

int64_t AllReduceOp::getSentBytes() {
  return 2 * (groupSize(*this, getAxis()) - 1) * partOf(*this) * elementBytes(getResult().getType());
}

//===----------------------------------------------------------------------===//
// CollectiveBroadcastOp, AllToAllOp
//===----------------------------------------------------------------------===//

LogicalResult CollectiveBroadcastOp::verify() { return verifyPeer(*this, getRoot(), getAxis()); }

CollectiveKind CollectiveBroadcastOp::getCollectiveKind() { return CollectiveKind::Broadcast; }

int64_t CollectiveBroadcastOp::getFlops() { return 0; }

int64_t CollectiveBroadcastOp::getSentBytes() {
  return groupSize(*this, getAxis()) > 1 ? bytesOf(getResult().getType()) : 0;
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyHasMesh(*this)))
    return failure();
  RankedTensorType type = getInput().getType();
  int64_t ranks = groupSize(*this, getAxis());
  if (type.getRank() > 0 && type.getDimSize(0) % ranks == 0) // C2.
    return success();
  return emitOpError("expects a dimension 0 that ") << ranks << " ranks divide, but got " << type;
}

CollectiveKind AllToAllOp::getCollectiveKind() { return CollectiveKind::AllToAll; }

int64_t AllToAllOp::getFlops() { return 0; }

int64_t AllToAllOp::getSentBytes() {
  int64_t ranks = groupSize(*this, getAxis());
  return bytesOf(getInput().getType()) / ranks * (ranks - 1);
}

//===----------------------------------------------------------------------===//
// SendOp, RecvOp
//===----------------------------------------------------------------------===//

LogicalResult SendOp::verify() { return verifyPeer(*this, getPeer(), getAxis()); }

CollectiveKind SendOp::getCollectiveKind() { return CollectiveKind::Send; }

int64_t SendOp::getFlops() { return 0; }

int64_t SendOp::getSentBytes() { return bytesOf(getInput().getType()); }

LogicalResult RecvOp::verify() { return verifyPeer(*this, getPeer(), getAxis()); }

CollectiveKind RecvOp::getCollectiveKind() { return CollectiveKind::Recv; }

int64_t RecvOp::getFlops() { return 0; }

int64_t RecvOp::getSentBytes() { return 0; }

//===----------------------------------------------------------------------===//
// LocalShardOp, AxisIndexOp
//===----------------------------------------------------------------------===//

LogicalResult LocalShardOp::verify() {
  return verifyParts(*this, getResult().getType(), getFull().getType(), getAxis());
}

LogicalResult AxisIndexOp::verify() { return verifyHasMesh(*this); }
