//===- CompileKernels.cpp - Generated kernels as one ELF shared object ---------===//

#include "ds/Codegen/CompileKernels.h"
#include "KernelEmitter.h"
#include "ObjectCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

namespace mlir::ds {
using namespace codegen;
using ::ds::Error;
using ::ds::ExitCode;

namespace {
/// A kernel's body and where its operands lie.
struct KernelBody {
  Body body;
  Layout layout;
};

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

/// Bytes of the operands; of one element of each where sizes are unknown.
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

/// Adds one kernel's function to `module`.
::ds::Result<CompiledKernel> addKernel(KernelOp kernel, unsigned vectorBits, ModuleOp module) {
  KernelBody source = readKernel(kernel);
  std::string reason;
  std::unique_ptr<LoopNest> nest = buildLoopNest(source.body, &source.layout, reason);
  if (!nest)
    return Error{ExitCode::Internal,
                 "kernel @" + kernel.getSymName().str() + " cannot be generated: " + reason,
                 "fusion must ask classify() before it makes a kernel"};
  emitKernel(*nest, source.body, source.layout, vectorBits, kernel.getSymName(), module);
  WorkUnits units = divideWork(*nest, chooseLanes(*nest, vectorBits));
  return CompiledKernel{kernel.getSymName().str(), units.extent, units.grain,
                        bodyFlops(source.body, nest->isDynamic()), operandBytes(kernel)};
}
} // namespace

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, math::MathDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

::ds::Result<CompiledKernels> compileKernels(ArrayRef<KernelOp> kernels, const TargetCpu &target) {
  CompiledKernels result;
  result.target = target;
  if (kernels.empty())
    return result;
  auto machine = makeTargetMachine(target);
  if (!machine)
    return machine.error();
  unsigned vectorBits = preferredVectorBits(**machine);
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(kernels[0]->getContext()));
  for (KernelOp kernel : kernels) {
    auto compiled = addKernel(kernel, vectorBits, *module);
    if (!compiled)
      return compiled.error();
    result.kernels.push_back(std::move(*compiled));
  }
  auto object = makeObject(*module, **machine);
  if (!object)
    return object.error();
  auto image = linkSharedObject(*object);
  if (!image)
    return image.error();
  result.image = std::move(*image);
  return result;
}

} // namespace mlir::ds
