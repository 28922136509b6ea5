//===- CommunicationOps.cpp - Collectives on buffers, in phase scheduled ---------===//
#include "OpHelpers.h"

using namespace mlir;
using namespace mlir::ds;

static int64_t elementsOf(BufferType type) { return type.getTensor().getNumElements(); }

/// Verifies that `op` has as many buffers as its kind moves, contiguous and of one element type (C1).
static LogicalResult verifyBuffers(CommunicateOp op) {
  size_t inputs = op.getKind() != CollectiveKind::Recv, outputs = op.getKind() != CollectiveKind::Send;
  if (op.getInputs().size() != inputs || op.getOutputs().size() != outputs)
    return op.emitOpError("expects ") << inputs << " input and " << outputs << " output, but got "
                                      << op.getInputs().size() << " and " << op.getOutputs().size();
  Type element;
  SmallVector<Value> buffers(op.getInputs());
  llvm::append_range(buffers, op.getOutputs());
  for (Value buffer : buffers) {
    auto type = cast<BufferType>(buffer.getType());
    if (!type.isContiguous())
      return op.emitOpError("expects contiguous buffers, but got ") << type;
    if (element && element != type.getTensor().getElementType())
      return op.emitOpError("expects one element type, but got ")
             << element << " and " << type.getTensor().getElementType();
    element = type.getTensor().getElementType();
  }
  return success();
}

/// Verifies the sizes of input and output against the number of ranks (C2).
static LogicalResult verifySizes(CommunicateOp op, int64_t ranks) {
  if (op.getInputs().empty() || op.getOutputs().empty())
    return success();
  int64_t input = elementsOf(cast<BufferType>(op.getInputs()[0].getType()));
  int64_t output = elementsOf(cast<BufferType>(op.getOutputs()[0].getType()));
  int64_t expected = input;
  if (op.getKind() == CollectiveKind::AllGather)
    expected = input * ranks;
  if (op.getKind() == CollectiveKind::ReduceScatter)
    expected = input / ranks;
  if (output == expected && (op.getKind() != CollectiveKind::ReduceScatter || output * ranks == input))
    return success();
  return op.emitOpError("expects ") << expected << " elements from " << input << " on each of " << ranks
                                    << " ranks, but got " << output;
}

LogicalResult CommunicateOp::verify() {
  if (failed(verifyBuffers(*this)))
    return failure();
  bool reduces = getKind() == CollectiveKind::ReduceScatter || getKind() == CollectiveKind::AllReduce;
  if (reduces != getReduction().has_value()) // C3.
    return emitOpError("expects a reduction exactly for what reduces, but got ")
           << stringifyCollectiveKind(getKind()) << (reduces ? " without one" : " with one");
  if (failed(verifyAxes(*this, getAxes().getNames()))) // C4.
    return failure();
  return verifySizes(*this, MeshOp::lookup(*this).getSize(getAxes()));
}

void CommunicateOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), Fabric::get());
  for (OpOperand &operand : getInputsMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand &operand : getOutputsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  for (OpOperand &operand : getWorkspaceMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
}

int64_t CommunicateOp::getSentBytes(int64_t ranks) {
  int64_t input = getInputs().empty() ? 0 : cast<BufferType>(getInputs()[0].getType()).getSizeInBytes();
  switch (getKind()) {
  case CollectiveKind::AllGather:
    return (ranks - 1) * input;
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return (ranks - 1) * (input / ranks);
  case CollectiveKind::AllReduce: {
    int64_t element = cast<BufferType>(getInputs()[0].getType()).getTensor().getElementTypeBitWidth() / 8;
    return 2 * (ranks - 1) * llvm::divideCeil(input / element, ranks) * element;
  }
  case CollectiveKind::Broadcast:
  case CollectiveKind::Send:
    return input;
  case CollectiveKind::Recv:
    return 0;
  }
  llvm_unreachable("all kinds are handled");
}
