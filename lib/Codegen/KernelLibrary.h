//===- KernelLibrary.h - The functions that generated code may call ------------===//
#ifndef DS_LIB_CODEGEN_KERNELLIBRARY_H
#define DS_LIB_CODEGEN_KERNELLIBRARY_H

#include "mlir/Support/LLVM.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Triple.h"

namespace mlir::ds::codegen {

/// What a kernel's image may import. Each is a function of libm, which ds-run links: nothing else has to be
/// there.
ArrayRef<StringRef> libmFunctions();

/// A library of these functions alone, none on processors without libm. LLVM knows hundreds that C has, and
/// writes calls of others in place of those it finds: exp2 for the power of 0.5, sqrt for the power to 0.5.
llvm::TargetLibraryInfoImpl describeLibrary(const llvm::Triple &triple);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_KERNELLIBRARY_H
