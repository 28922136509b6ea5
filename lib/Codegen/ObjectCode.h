//===- ObjectCode.h - From arith and LLVM ops to an ELF image ------------------===//
#ifndef DS_LIB_CODEGEN_OBJECTCODE_H
#define DS_LIB_CODEGEN_OBJECTCODE_H

#include "ds/Codegen/CompileKernels.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace mlir::ds::codegen {
using ::ds::Error;
using ::ds::ExitCode;
using ::ds::Result;
using ::ds::Status;

/// LLVM's machine for `target`: position-independent, no contraction of products and sums.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const mlir::ds::TargetCpu &target);

/// Width of vectors that the processor likes best.
unsigned preferredVectorBits(llvm::TargetMachine &machine);

/// Lowers arith and math ops of `module` to the LLVM dialect. `hasF16c`: f16 is converted by instructions.
/// `hasLibm`: functions that have no expansion are called.
LogicalResult lowerToLLVMDialect(mlir::ModuleOp module, bool hasFma, bool hasF16c, bool hasLibm = true);

/// Cleans up after the emitters. `scalarizes` takes vectors apart but for loads and stores.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, bool scalarizes = false);

/// Lowers `module` (functions of arith, math and LLVM ops; consumed) to a relocatable object.
Result<llvm::SmallVector<char, 0>> makeObject(mlir::ModuleOp module, llvm::TargetMachine &machine);

/// Links one object to a shared object whose undefined symbols are functions of libm. Uses no file on disk.
Result<std::vector<uint8_t>> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_OBJECTCODE_H
