//===- RuntimeCall.h - Library calls as the runtime reads them -------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_RUNTIMECALL_H
#define DS_LIB_PASSES_SUPPORT_RUNTIMECALL_H

#include "RuntimeBuffer.h"
#include "ds/Passes/LibraryTable.h"
#include "ds/Runtime/Program/ConvForm.h"

#include "llvm/ADT/bit.h"

namespace mlir::ds {

/// A parameter of a call as the program has it: doubles by bit pattern.
inline int64_t toRuntimeParam(Attribute param) {
  if (auto integer = dyn_cast<IntegerAttr>(param))
    return integer.getInt();
  return llvm::bit_cast<int64_t>(cast<FloatAttr>(param).getValueAsDouble());
}

/// What the runtime's descriptions of library commands are made from.
class RuntimeCall {
public:
  explicit RuntimeCall(CallOp call)
      : function(call.getCallee()), params(llvm::map_to_vector(call.getParams(), toRuntimeParam)),
        buffers(llvm::map_to_vector(
            call.getBuffers(),
            [](Value buffer) { return toRuntimeBuffer(cast<BufferType>(buffer.getType()), 0); })),
        addresses(llvm::map_to_vector(
            buffers, [](const ::ds::rt::Buffer &buffer) -> const ::ds::rt::Buffer * { return &buffer; })) {}
  RuntimeCall(const RuntimeCall &) = delete; // operands() would point into the other

  std::span<const ::ds::rt::Buffer *const> operands() const { return {addresses.data(), addresses.size()}; }
  const ::ds::rt::Buffer &operand(unsigned index) const { return buffers[index]; }

  /// Requires one of the three functions that convolve.
  ::ds::rt::ConvForm convolution() const {
    return ::ds::rt::describeConv(function, operands(), params.data());
  }

  const ::ds::rt::LibraryFn function;
  const SmallVector<int64_t> params;

private:
  const SmallVector<::ds::rt::Buffer> buffers; ///< at offset 0
  const SmallVector<const ::ds::rt::Buffer *> addresses;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_RUNTIMECALL_H
