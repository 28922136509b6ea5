//===- KernelBody.h - What a ds.kernel says ------------------------------------===//
#ifndef DS_LIB_CODEGEN_KERNELBODY_H
#define DS_LIB_CODEGEN_KERNELBODY_H

#include "LoopNest.h"
#include "ds/Support/Error.h"

namespace mlir::ds::codegen {

/// A kernel's body and where its operands lie.
struct KernelBody {
  Body body;
  Layout layout;
};

KernelBody readKernel(KernelOp kernel);

/// The nest of `source`, which `kernel` says, or an error that names the kernel.
::ds::Result<std::unique_ptr<LoopNest>> makeNest(KernelOp kernel, const KernelBody &source);

/// Bytes of the operands; of one element of each where sizes are unknown.
double operandBytes(KernelOp kernel);

/// Floating-point operations of one launch; of one element where sizes are unknown.
double bodyFlops(const Body &body, bool isDynamic);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_KERNELBODY_H
