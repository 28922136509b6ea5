//===- KernelBody.cpp - What a ds.kernel says ----------------------------------===//

#include "KernelBody.h"
#include "ds/Codegen/KernelStages.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::ds {

std::vector<::ds::rt::KernelOperand> findOperandNeeds(KernelOp kernel) {
  std::vector<::ds::rt::KernelOperand> needs;
  for (Attribute attribute : kernel.getBuffers()) {
    auto buffer = cast<BufferType>(cast<TypeAttr>(attribute).getValue());
    RankedTensorType type = buffer.getTensor();
    const bool perUnit = !type.hasStaticShape(); // of rank 1 and packed
    uint64_t last = 0;
    bool isEmpty = false;
    for (auto [size, stride] : llvm::zip_equal(type.getShape(), buffer.getStrides())) {
      isEmpty |= size == 0;
      if (size > 1)
        last += static_cast<uint64_t>(size - 1) * static_cast<uint64_t>(stride);
    }
    const uint64_t element = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    needs.push_back({isEmpty ? 0 : (last + 1) * element, perUnit});
  }
  return needs;
}

void describeKernel(const CompiledKernel &compiled, ::ds::rt::Kernel &entry) {
  entry.name = compiled.symbol;
  entry.extent = compiled.extent;
  entry.grain = compiled.grain;
  entry.blockThreads = compiled.blockThreads;
  entry.unitsPerBlock = compiled.unitsPerBlock;
  entry.persistent = compiled.blockThreads > 0;
  entry.alignments = compiled.alignments;
  entry.items = compiled.items;
  entry.operands = compiled.operands;
  entry.params = compiled.params;
}

} // namespace mlir::ds

namespace mlir::ds::codegen {

void describeLaunches(KernelOp kernel, CompiledKernel &compiled) {
  compiled.items = kernel.getItems().value_or(0);
  compiled.operands = findOperandNeeds(kernel);
  compiled.params = kernel.isDynamic() ? 1 : 0; // the extent
}

std::string spellInterfaces(ArrayRef<CompiledKernel> kernels, llvm::StringRef prefix) {
  std::string text;
  for (const CompiledKernel &kernel : kernels) {
    ::ds::rt::Kernel entry;
    describeKernel(kernel, entry);
    text += prefix.str() + ::ds::rt::spellInterface(entry) + "\n";
  }
  return text;
}

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

SmallVector<KernelBody, 2> readStages(KernelOp kernel) {
  Block &block = kernel.getBody().front();
  const SmallVector<KernelStage, 2> stages = stagesOf(block);
  SmallVector<KernelBody, 2> bodies;
  if (stages.size() == 1)
    bodies.push_back(readKernel(kernel));
  SmallVector<Value> inputs(block.getArguments());
  for (const KernelStage &stage : ArrayRef(stages).drop_front(bodies.size())) {
    KernelBody &body = bodies.emplace_back(readKernel(kernel));
    body.body = {stage.ops, stage.outputs};
    body.layout.inputs = inputs;
    llvm::append_range(inputs, stage.outputs);
    body.layout.strides.resize(inputs.size());
  }
  return bodies;
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
