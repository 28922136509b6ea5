//===- Functions.h - The functions of kernels/ that are measured by bytes --------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_FUNCTIONS_H
#define DS_LIB_RUNTIME_CALIBRATE_FUNCTIONS_H

#include "CommandList.h"

#include <span>

namespace ds::rt {

/// One function at one size.
struct FunctionCase {
  CommandList &bench;
  uint32_t command = 0;
};

/// `make` adds the command that touches about so many elements.
struct Function {
  LibraryFn fn;
  void (*make)(FunctionCase &, int64_t elements);
};
std::span<const Function> measuredFunctions();

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_FUNCTIONS_H
