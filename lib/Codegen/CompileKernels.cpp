//===- CompileKernels.cpp - Generated kernels as one ELF shared object ---------===//

#include "ds/Codegen/CompileKernels.h"
#include "KernelBody.h"
#include "KernelEmitter.h"
#include "ObjectCode.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

namespace mlir::ds {
using namespace codegen;
using ::ds::Error;
using ::ds::ExitCode;

namespace {
/// Adds one kernel's function to `module`.
::ds::Result<CompiledKernel> addKernel(KernelOp kernel, unsigned vectorBits, ModuleOp module) {
  KernelBody source = readKernel(kernel);
  auto nest = makeNest(kernel, source);
  if (!nest)
    return nest.error();
  emitKernel(**nest, source.body, source.layout, vectorBits, kernel.getSymName(), module);
  WorkUnits units = divideWork(**nest, chooseLanes(**nest, vectorBits));
  CompiledKernel result{kernel.getSymName().str(), units.extent, units.grain,
                        bodyFlops(source.body, (*nest)->isDynamic()), operandBytes(kernel)};
  describeLaunches(kernel, result);
  return result;
}

/// Adds what the loader holds the program's tables to.
void addInterfaces(ArrayRef<CompiledKernel> kernels, ModuleOp module) {
  std::string text = spellInterfaces(kernels) + '\0';
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), text.size());
  builder.create<LLVM::GlobalOp>(module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::External,
                                 ::ds::rt::kInterfaceSymbol, builder.getStringAttr(text));
}
} // namespace

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, math::MathDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
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
  addInterfaces(result.kernels, *module);
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
