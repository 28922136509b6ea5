//===- SumMakers.h - The kernels that make what a product could make -------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_PRODUCTS_SUMMAKERS_H
#define DS_LIB_RUNTIME_CUDA_PRODUCTS_SUMMAKERS_H

#include "ds/Runtime/Program/Library.h"
#include "ds/Runtime/Program/Program.h"

#include <cstdint>
#include <vector>

namespace ds::rt::cuda {

/// The one or two kernels of commands[index]'s segment that make the sums which it names, in their order:
/// before the product those of a factor, behind it those of its result. Empty where others make them, or
/// where micro-batches have them in places of their own.
std::vector<uint32_t> findSumMakers(const Program &program, uint32_t index, Summed summed);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_PRODUCTS_SUMMAKERS_H
