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

/// Lowers `module` (functions of arith, math and LLVM ops; consumed) to a relocatable object.
Result<llvm::SmallVector<char, 0>> makeObject(mlir::ModuleOp module, llvm::TargetMachine &machine);

/// Links one object to a shared object whose undefined symbols are functions of libm. Uses no file on disk.
Result<std::vector<uint8_t>> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_OBJECTCODE_H
