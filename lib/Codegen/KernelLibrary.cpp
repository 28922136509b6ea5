//===- KernelLibrary.cpp - The functions that generated code may call ----------===//
//
// One table for both sides: LLVM is told that the target has these functions and no others, so that no pass
// can bring one in, and the linker refuses the rest. To allow whatever libm exports instead would let LLVM
// choose the numbers: its exp10 and pow of 10 differ in the last digit, and the next LLVM may choose again.
//
//===---------------------------------------------------------------------------===//

#include "KernelLibrary.h"

namespace mlir::ds::codegen {

static constexpr StringRef kLibm[] = {"exp",  "log",  "tanh",  "erf",    "sin",  "cos",
                                      "pow",  "expf", "logf",  "tanhf",  "erff", "sinf",
                                      "cosf", "powf", "floor", "floorf", "fma",  "fmaf"};

ArrayRef<StringRef> libmFunctions() { return kLibm; }

llvm::TargetLibraryInfoImpl describeLibrary(const llvm::Triple &triple) {
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  if (triple.isNVPTX())
    return library;
  for (StringRef name : kLibm)
    if (llvm::LibFunc function; library.getLibFunc(name, function))
      library.setAvailable(function);
  return library;
}

} // namespace mlir::ds::codegen
