//===- Elements.h - Single elements of any type as doubles ---------------------===//
//
// For what is read or written once a step or once a run; tensors are converted by kernels.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_ELEMENTS_H
#define DS_LIB_RUNTIME_PROGRAM_ELEMENTS_H

#include "ds/Runtime/Program/Program.h"

#include <cstddef>

namespace ds::rt {

/// The element at `from`, which need not be aligned. 64-bit integers beyond 2^53 are rounded.
double loadElement(const std::byte *from, DType dtype);

/// Stores `value`, rounded to nearest even in the floating-point types, truncated in the integer types.
void storeElement(std::byte *to, DType dtype, double value);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_ELEMENTS_H
