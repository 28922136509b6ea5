//===- KernelFuzzTest.cpp - Random bodies against their meaning ----------------===//

#include "RandomKernels.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace ds::test;

namespace {

class KernelFuzz : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(KernelFuzz, MeansWhatTheBodySays) {
  constexpr int kKernels = 40;
  auto [element, seed] = GetParam();
  RandomKernels kernels = writeKernels(seed, element, kKernels);
  ASSERT_EQ(int(kernels.sources.size()), kKernels) << "most random bodies are refused";
  KernelHarness harness(kernels.text);
  ASSERT_TRUE(harness.isLoaded());
  for (int k = 0; k < kKernels; ++k) {
    std::string name = "k" + std::to_string(k);
    const std::vector<Tensor> &inputs = kernels.inputs[k];
    std::vector<Tensor> whole = harness.run(name, inputs), pieces = harness.run(name, inputs, {0.21, 0.64});
    expectMeaning(whole, harness.interpret(name, inputs), element, kernels.sources[k]);
    for (size_t o = 0; o < whole.size(); ++o)
      for (size_t e = 0; e < whole[o].values.size(); ++e)
        ASSERT_EQ(std::memcmp(&whole[o].values[e], &pieces[o].values[e], sizeof(double)), 0)
            << "output " << o << " element " << e << " depends on the pieces\n"
            << kernels.sources[k];
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Single, KernelFuzz,
                         testing::Combine(testing::Values("f32"), testing::Range(1u, 9u)));
INSTANTIATE_TEST_SUITE_P(Narrow, KernelFuzz,
                         testing::Combine(testing::Values("bf16", "f16"), testing::Range(1u, 4u)));

} // namespace
