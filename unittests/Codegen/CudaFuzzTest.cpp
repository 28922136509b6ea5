//===- CudaFuzzTest.cpp - The mapping of random bodies onto CUDA threads -------===//
#include "CudaEmulator.h"
#include "RandomKernels.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace ds::test;

namespace {

class CudaFuzz : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(CudaFuzz, MeansWhatTheBodySays) {
  constexpr int kKernels = 40;
  auto [element, seed] = GetParam();
  RandomKernels kernels = writeKernels(seed, element, kKernels);
  ASSERT_EQ(int(kernels.sources.size()), kKernels) << "most random bodies are refused";
  KernelHarness harness(kernels.text);
  CudaEmulator emulator(harness);
  ASSERT_TRUE(emulator.isLoaded());
  for (int k = 0; k < kKernels; ++k) {
    std::string name = "k" + std::to_string(k);
    const std::vector<Tensor> &inputs = kernels.inputs[k];
    std::vector<Tensor> whole = emulator.run(name, inputs), fewer = emulator.run(name, inputs, 2);
    expectMeaning(whole, harness.interpret(name, inputs), element, kernels.sources[k]);
    for (size_t o = 0; o < whole.size(); ++o)
      for (size_t e = 0; e < whole[o].values.size(); ++e)
        ASSERT_EQ(std::memcmp(&whole[o].values[e], &fewer[o].values[e], sizeof(double)), 0)
            << "output " << o << " element " << e << " depends on the grid\n"
            << kernels.sources[k];
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Single, CudaFuzz, testing::Combine(testing::Values("f32"), testing::Range(1u, 6u)));
INSTANTIATE_TEST_SUITE_P(Narrow, CudaFuzz,
                         testing::Combine(testing::Values("bf16", "f16"), testing::Range(1u, 3u)));

} // namespace
