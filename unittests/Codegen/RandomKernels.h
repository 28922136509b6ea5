//===- RandomKernels.h - Many random kernels, and what they should give ---------===//
#ifndef DS_UNITTESTS_CODEGEN_RANDOMKERNELS_H
#define DS_UNITTESTS_CODEGEN_RANDOMKERNELS_H

#include "KernelHarness.h"

namespace ds::test {

/// Kernels that classify() accepts, k0, k1, ..., and values for their inputs.
struct RandomKernels {
  std::vector<std::string> sources;
  std::vector<std::vector<Tensor>> inputs;
  std::string text; ///< all sources
};

/// `count` random kernels, or fewer if most are refused.
RandomKernels writeKernels(unsigned seed, const std::string &element, int count);

/// Expects `outputs` to be what kernel `source` means, with the rounding of its types.
void expectMeaning(const std::vector<Tensor> &outputs, const std::vector<Tensor> &expected,
                   const std::string &element, const std::string &source);

} // namespace ds::test

#endif // DS_UNITTESTS_CODEGEN_RANDOMKERNELS_H
