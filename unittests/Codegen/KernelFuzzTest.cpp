//===- KernelFuzzTest.cpp - Random bodies against their meaning ---------------===//
#include "BodyWriter.h"
#include "ds/Codegen/KernelClass.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace ds::test;

namespace {

/// What a rounding that goes the other way in the interpreter may have become at the end of a body.
double toleranceOf(const std::string &element, const std::string &source) {
  if (element == "bf16")
    return 4e-2;
  return element == "f16" || source.find("bf16") != std::string::npos ? 1e-2 : 2e-4;
}

class KernelFuzz : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(KernelFuzz, MeansWhatTheBodySays) {
  constexpr int kKernels = 40;
  auto [element, seed] = GetParam();
  BodyWriter writer(seed, element);
  std::string text;
  std::vector<std::string> sources;
  std::vector<std::vector<Tensor>> inputs;
  mlir::MLIRContext context;
  for (int tries = 0; int(sources.size()) < kKernels && tries < 10 * kKernels; ++tries) {
    std::vector<Tensor> values;
    std::string source = writer.kernel("k" + std::to_string(sources.size()), values);
    if (!KernelHarness::classifies(source))
      continue;
    text += source;
    sources.push_back(source);
    inputs.push_back(values);
  }
  ASSERT_EQ(int(sources.size()), kKernels) << "most random bodies are refused";
  KernelHarness harness(text);
  ASSERT_TRUE(harness.isLoaded());
  for (int k = 0; k < kKernels; ++k) {
    std::string name = "k" + std::to_string(k);
    std::vector<Tensor> whole = harness.run(name, inputs[k]),
                        pieces = harness.run(name, inputs[k], {0.21, 0.64});
    std::vector<Tensor> expected = harness.interpret(name, inputs[k]);
    for (size_t o = 0; o < expected.size(); ++o) {
      double largest = 1;
      for (double value : expected[o].values)
        if (std::isfinite(value))
          largest = std::max(largest, std::abs(value));
      double tolerance = toleranceOf(element, sources[k]) * largest;
      for (size_t e = 0; e < expected[o].values.size(); ++e) {
        double x = whole[o].values[e], y = expected[o].values[e];
        ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance || (std::isnan(x) && std::isnan(y)))
            << "output " << o << " element " << e << ": " << x << " for " << y << "\n"
            << sources[k];
        ASSERT_EQ(std::memcmp(&x, &pieces[o].values[e], sizeof x), 0)
            << "output " << o << " element " << e << " depends on the pieces\n"
            << sources[k];
      }
    }
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Single, KernelFuzz,
                         testing::Combine(testing::Values("f32"), testing::Range(1u, 9u)));
INSTANTIATE_TEST_SUITE_P(Narrow, KernelFuzz,
                         testing::Combine(testing::Values("bf16", "f16"), testing::Range(1u, 4u)));

} // namespace
