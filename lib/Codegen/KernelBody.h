//===- KernelBody.h - What a ds.kernel says ------------------------------------===//
#ifndef DS_LIB_CODEGEN_KERNELBODY_H
#define DS_LIB_CODEGEN_KERNELBODY_H

#include "LoopNest.h"
#include "ds/Codegen/CompileKernels.h"
#include "ds/Support/Error.h"

namespace mlir::ds::codegen {

/// A kernel's body and where its operands lie.
struct KernelBody {
  Body body;
  Layout layout;
};

KernelBody readKernel(KernelOp kernel);

/// The same of each stage (ds/Codegen/KernelStages.h). Operands have the kernel's numbers in both: what the
/// first stage stores follows the inputs, and what the second stores follows that.
SmallVector<KernelBody, 2> readStages(KernelOp kernel);

/// The nest of `source`, which `kernel` says, or an error that names the kernel.
::ds::Result<std::unique_ptr<LoopNest>> makeNest(KernelOp kernel, const KernelBody &source);

/// What the launches of `kernel` pass, into `compiled`.
void describeLaunches(KernelOp kernel, CompiledKernel &compiled);

/// The lines of the interfaces of `kernels` (ds/Runtime/Program/KernelInterface.h), each behind `prefix`.
std::string spellInterfaces(ArrayRef<CompiledKernel> kernels, llvm::StringRef prefix = "");

/// Bytes of the operands; of one element of each where sizes are unknown.
double operandBytes(KernelOp kernel);

/// Floating-point operations of one launch; of one element where sizes are unknown.
double bodyFlops(const Body &body, bool isDynamic);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_KERNELBODY_H
