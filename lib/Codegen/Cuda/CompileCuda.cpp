//===- CompileCuda.cpp - Generated kernels as PTX ------------------------------===//
//
// The same nests as on the CPU, mapped onto threads, through LLVM's NVPTX back end. No flag allows products
// and sums to be contracted or reordered: PTX says .rn on each, which ptxas obeys.
//
//===---------------------------------------------------------------------------===//

#include "ds/Codegen/CompileCuda.h"
#include "CudaEmitter.h"
#include "KernelBody.h"
#include "KernelLibrary.h"
#include "ObjectCode.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

namespace mlir::ds {
using namespace codegen;
using ::ds::Error;
using ::ds::ExitCode;

static constexpr StringRef kTriple = "nvptx64-nvidia-cuda";
static constexpr StringRef kProcessors[] = {"sm_80", "sm_90"};

ArrayRef<StringRef> cudaProcessors() { return kProcessors; }

int cudaCapability(StringRef name) {
  int capability = 0;
  name.consume_front("cuda:");
  const bool isNumber = name.consume_front("sm_") && !name.getAsInteger(10, capability);
  return isNumber ? capability : 0;
}

std::optional<StringRef> nearestProcessor(StringRef architecture) {
  std::optional<StringRef> nearest;
  for (StringRef processor : kProcessors)
    if (cudaCapability(processor) <= cudaCapability(architecture))
      nearest = processor;
  return nearest;
}

::ds::Result<std::string> findCudaProcessor(StringRef target) {
  StringRef name = target;
  if (name.consume_front("cuda:"))
    if (std::optional<StringRef> nearest = nearestProcessor(name))
      return nearest->str();
  return Error{ExitCode::Invalid, "--target " + target.str() + ": no target of this name",
               "write cpu, cuda:sm_80, cuda:sm_90, or the later device that is to run it, as cuda:sm_89"};
}

static std::unique_ptr<llvm::TargetMachine> makeMachine(StringRef processor) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(kTriple.str(), error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(kTriple, processor, "+ptx78", options, llvm::Reloc::PIC_, std::nullopt,
                                   llvm::CodeGenOptLevel::Default));
}

/// Adds one kernel to `module`.
static ::ds::Result<CompiledKernel> addKernel(KernelOp kernel, const std::vector<uint32_t> &alignments,
                                              ModuleOp module) {
  auto planned = planCudaKernel(kernel, alignments);
  if (!planned)
    return planned.error();
  NvvmThread thread;
  emitCudaKernel(*planned, kernel.getSymName(), thread, module);
  const CudaMapping &mapping = planned->mappings[0];
  CompiledKernel result{kernel.getSymName().str(), mapping.extent, 1,
                        bodyFlops(readKernel(kernel).body, kernel.isDynamic()), operandBytes(kernel)};
  result.blockThreads = mapping.blockThreads;
  result.unitsPerBlock = mapping.unitsPerBlock;
  result.alignments = alignments;
  describeLaunches(kernel, result);
  return result;
}

/// A function that the device does not have, or an empty name.
static StringRef findImport(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic())
      return function.getName();
  return "";
}

/// Translates `module` to PTX.
static ::ds::Result<std::vector<uint8_t>> writePtx(ModuleOp module, StringRef processor) {
  auto internal = [](const Twine &what) { return Error{ExitCode::Internal, what.str(), ""}; };
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(processor);
  if (!machine)
    return internal("LLVM has no machine for " + processor);
  if (failed(lowerToLLVMDialect(module, /*hasFma=*/true, /*hasF16c=*/true, /*hasLibm=*/false)))
    return internal("generated kernels did not lower to LLVM");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernels");
  if (!code)
    return internal("generated kernels did not translate to LLVM IR");
  if (StringRef import = findImport(*code); !import.empty())
    return Error{ExitCode::Invalid, "'" + import.str() + "' of this type has no form for CUDA",
                 "compute it in fp32, or compile with --target cpu"};
  code->setDataLayout(machine->createDataLayout());
  code->setTargetTriple(kTriple);
  optimize(*code, *machine, /*scalarizes=*/true);
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emitter;
  emitter.add(new llvm::TargetLibraryInfoWrapperPass(describeLibrary(machine->getTargetTriple())));
  if (machine->addPassesToEmitFile(emitter, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                   /*DisableVerify=*/true))
    return internal("LLVM cannot write PTX");
  emitter.run(*code);
  std::vector<uint8_t> result(text.begin(), text.end());
  result.push_back(0);
  return result;
}

::ds::Result<CompiledKernels> compileCudaKernels(ArrayRef<KernelOp> kernels,
                                                 ArrayRef<std::vector<uint32_t>> alignments,
                                                 StringRef processor) {
  CompiledKernels result;
  if (kernels.empty())
    return result;
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(kernels[0]->getContext()));
  for (auto [kernel, bytes] : llvm::zip_equal(kernels, alignments)) {
    auto compiled = addKernel(kernel, bytes, *module);
    if (!compiled)
      return compiled.error();
    result.kernels.push_back(std::move(*compiled));
  }
  auto text = writePtx(*module, processor);
  if (!text)
    return text.error();
  const std::string head = spellInterfaces(result.kernels, ::ds::rt::kInterfaceComment);
  result.image.assign(head.begin(), head.end());
  result.image.insert(result.image.end(), text->begin(), text->end());
  return result;
}

} // namespace mlir::ds
