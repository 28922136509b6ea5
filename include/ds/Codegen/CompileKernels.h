//===- CompileKernels.h - Generated kernels as one ELF shared object -----------===//
#ifndef DS_CODEGEN_COMPILEKERNELS_H
#define DS_CODEGEN_COMPILEKERNELS_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::ds {

/// A processor as LLVM names it, with the features that code may use.
struct TargetCpu {
  std::string cpu;                   ///< "znver4", "sapphirerapids", "x86-64-v3"
  std::vector<std::string> features; ///< instruction sets that the image may use, sorted: "avx2", "fma"
};

/// The processor called `name`; "" and "host" are this machine's. Fails (exit code 2) for a name LLVM lacks.
::ds::Result<TargetCpu> findTargetCpu(StringRef name);

/// One function of the image; see Kernel in ds/Runtime/Program/Program.h for how it is called.
struct CompiledKernel {
  std::string symbol;
  int64_t extent = 0, grain = 1;
  double flops = 0;          ///< per launch; per element where extent is 0
  double bytes = 0;          ///< of the operands, each counted once; likewise
  uint32_t blockThreads = 0; ///< CUDA: these as in Kernel
  int64_t unitsPerBlock = 1;
  std::vector<uint32_t> alignments = {};
  uint32_t items = 0;
  std::vector<::ds::rt::KernelOperand> operands = {};
  uint32_t params = 0;
};

/// How far the code of `kernel` goes in each of its operands.
std::vector<::ds::rt::KernelOperand> findOperandNeeds(KernelOp kernel);

/// Sets in `entry` what the program says of a compiled kernel.
void describeKernel(const CompiledKernel &compiled, ::ds::rt::Kernel &entry);

struct CompiledKernels {
  std::vector<uint8_t> image;          ///< ELF shared object that imports functions of libm only; or PTX
  std::vector<CompiledKernel> kernels; ///< in the order asked for
  TargetCpu target;
};

/// What compileKernels needs in the context of the kernels it is given.
void registerCodegenDialects(DialectRegistry &registry);

/// Compiles `kernels`, all of one context, for `target`. A kernel that classify() refuses is an error that
/// names it. Equal input gives equal bytes.
::ds::Result<CompiledKernels> compileKernels(ArrayRef<KernelOp> kernels, const TargetCpu &target);

} // namespace mlir::ds

#endif // DS_CODEGEN_COMPILEKERNELS_H
