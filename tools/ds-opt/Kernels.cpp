//===- Kernels.cpp - Generates the kernels of a program --------------------------===//
#include "Kernels.h"

#include "ds/Codegen/CompileCuda.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <numeric>

using namespace ds;
using namespace ds::opt;

/// Of each kernel's operands, the bytes of which their addresses are a multiple at every launch. `indices`
/// are the kernels' in the program.
static std::vector<std::vector<uint32_t>> findAlignments(llvm::ArrayRef<mlir::ds::KernelOp> kernels,
                                                         llvm::ArrayRef<uint32_t> indices,
                                                         const rt::Program &program) {
  constexpr uint32_t kMost = 16; // the widest access
  std::vector<std::vector<uint32_t>> result;
  llvm::DenseMap<uint32_t, size_t> places;
  for (auto [kernel, index] : llvm::zip_equal(kernels, indices)) {
    mlir::ds::KernelOp op = kernel;
    places[index] = result.size();
    result.emplace_back(op.getBuffers().size(), kMost);
  }
  for (const rt::Command &command : program.commands) {
    auto place = places.find(command.callee);
    if (command.kind != rt::CommandKind::Kernel || place == places.end())
      continue;
    std::vector<uint32_t> &alignments = result[place->second];
    for (uint32_t k = 0; k < command.numOperands; ++k) {
      const rt::Buffer &buffer = program.buffers[program.operands[command.firstOperand + k]];
      uint32_t &alignment = alignments[k % alignments.size()];
      alignment = std::gcd(alignment, static_cast<uint32_t>(rt::offsetBits(buffer) % kMost));
    }
  }
  return result;
}

namespace {
/// Kernels of one image, with their places in the program.
struct KernelList {
  std::vector<mlir::ds::KernelOp> kernels;
  std::vector<uint32_t> indices;
};
} // namespace

/// The kernels of `model` that the host runs, or those that it does not. A program for the CPU has one image.
static KernelList findKernels(const Model &model, const Options &options, bool onHost) {
  KernelList list;
  for (auto [index, kernel] : llvm::enumerate(mlir::ds::getKernels(*model.module)))
    if ((options.target != "cpu" && kernel.runsOnHost()) == onHost) {
      list.kernels.push_back(kernel);
      list.indices.push_back(index);
    }
  return list;
}

static Result<mlir::ds::CompiledKernels> compileForCpu(llvm::ArrayRef<mlir::ds::KernelOp> kernels,
                                                       llvm::StringRef processor) {
  Result<mlir::ds::TargetCpu> target = mlir::ds::findTargetCpu(processor);
  return target ? mlir::ds::compileKernels(kernels, *target) : target.error();
}

static Result<mlir::ds::CompiledKernels> compileForCuda(const KernelList &list, const Options &options,
                                                        rt::Program &program) {
  Result<std::string> processor = mlir::ds::findCudaProcessor(options.target);
  if (!processor)
    return processor.error();
  Result<mlir::ds::CompiledKernels> compiled = mlir::ds::compileCudaKernels(
      list.kernels, findAlignments(list.kernels, list.indices, program), *processor);
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

/// Tells the program's kernels and launches what was made for them.
static void describe(const mlir::ds::CompiledKernels &compiled, llvm::ArrayRef<uint32_t> indices,
                     rt::Program &program) {
  llvm::DenseMap<uint32_t, const mlir::ds::CompiledKernel *> made;
  for (auto [index, kernel] : llvm::zip_equal(indices, compiled.kernels)) {
    mlir::ds::describeKernel(kernel, program.kernels[index]);
    made[index] = &kernel;
  }
  for (rt::Command &command : program.commands) {
    const mlir::ds::CompiledKernel *kernel =
        command.kind == rt::CommandKind::Kernel ? made.lookup(command.callee) : nullptr;
    if (!kernel)
      continue;
    double times = 1;
    if (kernel->extent == 0) {
      auto extents = program.params.begin() + command.firstParam;
      times = std::accumulate(extents, extents + command.numParams, 0.0);
    }
    command.flops = kernel->flops * times;
  }
}

/// The processor that the host of an accelerator is taken for: it is seldom the one that compiles.
static llvm::StringRef hostProcessor(const Options &options) {
  return options.targetCpu == "host" ? "x86-64-v3" : llvm::StringRef(options.targetCpu);
}

Status ds::opt::addKernels(const Model &model, const Options &options, rt::Program &program) {
  program.target = options.target;
  const bool isCpu = options.target == "cpu";
  const KernelList main = findKernels(model, options, /*onHost=*/false);
  Result<mlir::ds::CompiledKernels> compiled =
      isCpu ? compileForCpu(main.kernels, options.targetCpu) : compileForCuda(main, options, program);
  if (!compiled)
    return compiled.error();
  program.image = std::move(compiled->image);
  describe(*compiled, main.indices, program);
  const KernelList host = findKernels(model, options, /*onHost=*/true);
  mlir::ds::TargetCpu target = std::move(compiled->target);
  if (!host.kernels.empty()) {
    Result<mlir::ds::CompiledKernels> hosts = compileForCpu(host.kernels, hostProcessor(options));
    if (!hosts)
      return hosts.error();
    program.hostImage = std::move(hosts->image);
    describe(*hosts, host.indices, program);
    target = std::move(hosts->target);
  }
  program.targetCpu = std::move(target.cpu);
  program.cpuFeatures = std::move(target.features);
  return {};
}
