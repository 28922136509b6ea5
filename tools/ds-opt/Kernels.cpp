//===- Kernels.cpp - Generates the kernels of a program --------------------------===//
#include "Kernels.h"

#include "ds/Codegen/CompileCuda.h"
#include "ds/Runtime/ProgramFile.h"

#include <numeric>

using namespace ds;
using namespace ds::opt;

/// Of each kernel's operands, the bytes of which their addresses are a multiple at every launch.
static std::vector<std::vector<uint32_t>> findAlignments(llvm::ArrayRef<mlir::ds::KernelOp> kernels,
                                                         const rt::Program &program) {
  constexpr uint32_t kMost = 16; // the widest access
  std::vector<std::vector<uint32_t>> result;
  for (mlir::ds::KernelOp kernel : kernels)
    result.emplace_back(kernel.getBuffers().size(), kMost);
  for (const rt::Command &command : program.commands)
    for (uint32_t k = 0; command.kind == rt::CommandKind::Kernel && k < command.numOperands; ++k) {
      const rt::Buffer &buffer = program.buffers[program.operands[command.firstOperand + k]];
      uint32_t &alignment = result[command.callee][k % result[command.callee].size()];
      alignment = std::gcd(alignment, static_cast<uint32_t>(rt::offsetBits(buffer) % kMost));
    }
  return result;
}

/// Generates `kernels` for the target that is asked for.
static Result<mlir::ds::CompiledKernels> compile(llvm::ArrayRef<mlir::ds::KernelOp> kernels,
                                                 const Options &options, rt::Program &program) {
  if (options.target == "cpu") {
    Result<mlir::ds::TargetCpu> target = mlir::ds::findTargetCpu(options.targetCpu);
    if (!target)
      return target.error();
    return mlir::ds::compileKernels(kernels, *target);
  }
  Result<std::string> processor = mlir::ds::findCudaProcessor(options.target);
  if (!processor)
    return processor.error();
  Result<mlir::ds::CompiledKernels> compiled =
      mlir::ds::compileCudaKernels(kernels, findAlignments(kernels, program), *processor);
  if (!compiled)
    return compiled.error();
  // The cubin only spares the driver work: a ptxas that is broken here must not cost anybody the program.
  Result<std::vector<uint8_t>> cubin = mlir::ds::assemblePtx(compiled->image, *processor);
  if (cubin)
    program.cubin = std::move(*cubin);
  else
    llvm::errs() << "note: the program holds its kernels as PTX alone, which the driver assembles at load: "
                 << cubin.error().message << "\n";
  return compiled;
}

Status ds::opt::addKernels(const Model &model, const Options &options, rt::Program &program) {
  auto kernels = llvm::to_vector(model.module.get().getOps<mlir::ds::KernelOp>());
  Result<mlir::ds::CompiledKernels> compiled = compile(kernels, options, program);
  if (!compiled)
    return compiled.error();
  program.target = options.target;
  program.targetCpu = compiled->target.cpu;
  program.cpuFeatures = compiled->target.features;
  program.image = std::move(compiled->image);
  for (auto [kernel, made] : llvm::zip_equal(program.kernels, compiled->kernels))
    mlir::ds::describeKernel(made, kernel);
  for (rt::Command &command : program.commands)
    if (command.kind == rt::CommandKind::Kernel) {
      const mlir::ds::CompiledKernel &made = compiled->kernels[command.callee];
      double times = 1;
      if (made.extent == 0) {
        auto extents = program.params.begin() + command.firstParam;
        times = std::accumulate(extents, extents + command.numParams, 0.0);
      }
      command.flops = made.flops * times;
    }
  return {};
}
