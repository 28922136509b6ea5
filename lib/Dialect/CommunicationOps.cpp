//===- CommunicationOps.cpp - Collectives on buffers, in phase scheduled ---------===//
#include "OpHelpers.h"
#include "ds/Dialect/Collectives.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

static int64_t elementsOf(BufferType type) { return type.getTensor().getNumElements(); }

/// Verifies that `op` has as many buffers as its kind moves, contiguous and of one element type (C1).
static LogicalResult verifyBuffers(CommunicateOp op) {
  const rt::CollectiveTraits &traits = traitsOf(op.getKind());
  size_t inputs = traits.input != rt::Parts::None, outputs = traits.output != rt::Parts::None;
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
  const rt::CollectiveTraits &traits = traitsOf(op.getKind());
  int64_t parts = traits.count(traits.input, ranks);
  int64_t expected = input / parts * traits.count(traits.output, ranks);
  if (output == expected && input % parts == 0)
    return success();
  return op.emitOpError("expects ") << expected << " elements from " << input << " on each of " << ranks
                                    << " ranks, but got " << output;
}

LogicalResult CommunicateOp::verify() {
  if (failed(verifyBuffers(*this)))
    return failure();
  bool reduces = traitsOf(getKind()).reduces;
  if (reduces != getReduction().has_value()) // C3.
    return emitOpError("expects a reduction exactly for what reduces, but got ")
           << stringifyCollectiveKind(getKind()) << (reduces ? " without one" : " with one");
  if (failed(verifyAxes(*this, getAxes().getNames()))) // C4.
    return failure();
  int64_t ranks = MeshOp::lookup(*this).getSize(getAxes());
  if (static_cast<int64_t>(getPeer()) >= ranks) // C5.
    return emitOpError("expects a peer below ") << ranks << ", but got " << getPeer();
  return verifySizes(*this, ranks);
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

rt::CommandKind CommunicateOp::getCommandKind() { return rt::CommandKind::Collective; }

std::string CommunicateOp::getLabel(SymbolTable &) { return stringifyCollectiveKind(getKind()).str(); }

int64_t CommunicateOp::getTraffic() {
  MeshOp mesh = MeshOp::lookup(*this);
  return getSentBytes(mesh ? mesh.getSize(getAxes()) : 1);
}

int64_t CommunicateOp::getSentBytes(int64_t ranks) {
  if (getInputs().empty())
    return 0;
  auto input = cast<BufferType>(getInputs()[0].getType());
  return static_cast<int64_t>(traitsOf(getKind()).sentBytes(
      input.getSizeInBytes(), input.getTensor().getElementTypeBitWidth() / 8, ranks));
}

//===----------------------------------------------------------------------===//
// RecordOp, WaitOp
//===----------------------------------------------------------------------===//

rt::CommandKind RecordOp::getCommandKind() { return rt::CommandKind::RecordEvent; }
std::optional<int64_t> RecordOp::getRecordedEvent() { return getEvent(); }

rt::CommandKind WaitOp::getCommandKind() { return rt::CommandKind::WaitEvent; }
std::optional<int64_t> WaitOp::getAwaitedEvent() { return getEvent(); }
