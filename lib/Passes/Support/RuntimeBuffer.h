//===- RuntimeBuffer.h - Buffers of the IR as the program has them ---------------===//
#ifndef DS_LIB_PASSES_SUPPORT_RUNTIMEBUFFER_H
#define DS_LIB_PASSES_SUPPORT_RUNTIMEBUFFER_H

#include "ds/Dialect/Collectives.h"
#include "ds/Runtime/Program/Program.h"

namespace mlir::ds {

/// The program's spelling of an element type that a buffer may have.
inline ::ds::rt::DType toRuntimeType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    switch (integer.getWidth()) {
    case 1:
      return ::ds::rt::DType::Bool;
    case 8:
      return integer.isUnsigned() ? ::ds::rt::DType::U8 : ::ds::rt::DType::I8;
    case 32:
      return ::ds::rt::DType::I32;
    default:
      return ::ds::rt::DType::I64;
    }
  }
  if (type.isF64())
    return ::ds::rt::DType::F64;
  if (type.isF16())
    return ::ds::rt::DType::F16;
  return type.isBF16() ? ::ds::rt::DType::BF16 : ::ds::rt::DType::F32;
}

/// `type` as a window of its arena that starts at `offset` bytes.
inline ::ds::rt::Buffer toRuntimeBuffer(BufferType type, uint64_t offset) {
  ::ds::rt::Buffer buffer;
  buffer.space = static_cast<::ds::rt::Space>(type.getSpace());
  buffer.dtype = toRuntimeType(type.getTensor().getElementType());
  buffer.offset = offset;
  buffer.shape.assign(type.getTensor().getShape().begin(), type.getTensor().getShape().end());
  buffer.strides.assign(type.getStrides().begin(), type.getStrides().end());
  return buffer;
}

/// What the ranks do in `op`, as the program has it but for the axes, which have numbers in the program
/// alone; `name` is for diagnostics.
inline ::ds::rt::Collective toRuntimeCollective(CommunicateOp op, std::string name) {
  ::ds::rt::Collective collective;
  collective.kind = toRuntimeKind(op.getKind());
  if (op.getReduction())
    collective.reduction = static_cast<::ds::rt::Reduction>(static_cast<unsigned>(*op.getReduction()) + 1);
  auto elementsOf = [](Value buffer) {
    return cast<BufferType>(buffer.getType()).getTensor().getNumElements();
  };
  const ::ds::rt::CollectiveTraits &traits = ::ds::rt::traitsOf(collective.kind);
  const bool isOutput = isOutputPart(op.getKind());
  Value part = isOutput ? op.getOutputs()[0] : op.getInputs()[0];
  collective.dtype = toRuntimeType(cast<BufferType>(part.getType()).getTensor().getElementType());
  collective.elements = elementsOf(part);
  if (!isOutput && traits.input == ::ds::rt::Parts::All)
    collective.elements /= MeshOp::lookup(op).getSize(op.getAxes());
  collective.name = std::move(name);
  return collective;
}

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_RUNTIMEBUFFER_H
