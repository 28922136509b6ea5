//===- KernelEmitter.h - One function per kernel -------------------------------===//
#ifndef DS_LIB_CODEGEN_KERNELEMITTER_H
#define DS_LIB_CODEGEN_KERNELEMITTER_H

#include "LoopNest.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds::codegen {

/// Lanes of a vector for this nest: as many 32-bit ones as `vectorBits` holds, fewer where the vector
/// dimension is shorter, 1 where there is none.
int64_t chooseLanes(const LoopNest &nest, unsigned vectorBits);

/// Adds `symbol`, the function of the kernel over `nest`, to `module`: arith and math ops in an LLVM
/// function. The body and its layout are resolved again for each piece between the nest's cuts.
void emitKernel(const LoopNest &nest, const Body &body, const Layout &layout, unsigned vectorBits,
                llvm::StringRef symbol, mlir::ModuleOp module);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_KERNELEMITTER_H
