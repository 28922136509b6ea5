//===- KernelBody.cpp - What a ds.kernel says ----------------------------------===//

#include "KernelBody.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::ds::codegen {

KernelBody readKernel(KernelOp kernel) {
  KernelBody result;
  Block &block = kernel.getBody().front();
  for (Operation &op : block.without_terminator())
    result.body.ops.push_back(&op);
  llvm::append_range(result.body.outputs, block.getTerminator()->getOperands());
  llvm::append_range(result.layout.inputs, block.getArguments());
  for (Attribute buffer : kernel.getBuffers())
    result.layout.strides.emplace_back(cast<BufferType>(cast<TypeAttr>(buffer).getValue()).getStrides());
  return result;
}

double operandBytes(KernelOp kernel) {
  double bytes = 0;
  for (Attribute buffer : kernel.getBuffers()) {
    RankedTensorType type = cast<BufferType>(cast<TypeAttr>(buffer).getValue()).getTensor();
    double elements = type.hasStaticShape() ? double(type.getNumElements()) : 1;
    bytes += elements * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

double bodyFlops(const Body &body, bool isDynamic) {
  double flops = 0;
  for (Operation *op : body.ops) {
    if (isDynamic)
      flops += isa<ScalarBodyOpInterface>(op) && isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
    else if (auto cost = dyn_cast<CostOpInterface>(op))
      flops += double(cost.getFlops());
  }
  return flops;
}

::ds::Result<std::unique_ptr<LoopNest>> makeNest(KernelOp kernel, const KernelBody &source) {
  std::string reason;
  std::unique_ptr<LoopNest> nest = buildLoopNest(source.body, &source.layout, reason);
  if (!nest)
    return ::ds::Error{::ds::ExitCode::Internal,
                       "kernel @" + kernel.getSymName().str() + " cannot be generated: " + reason,
                       "fusion must ask classify() before it makes a kernel"};
  return nest;
}

} // namespace mlir::ds::codegen
