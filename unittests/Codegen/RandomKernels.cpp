//===- RandomKernels.cpp - Many random kernels, and what they should give -------===//
#include "RandomKernels.h"
#include "BodyWriter.h"

#include <cmath>
#include <gtest/gtest.h>

namespace ds::test {

RandomKernels writeKernels(unsigned seed, const std::string &element, int count) {
  RandomKernels result;
  BodyWriter writer(seed, element);
  for (int tries = 0; int(result.sources.size()) < count && tries < 10 * count; ++tries) {
    std::vector<Tensor> values;
    std::string source = writer.kernel("k" + std::to_string(result.sources.size()), values);
    if (!KernelHarness::classifies(source))
      continue;
    result.text += source;
    result.sources.push_back(source);
    result.inputs.push_back(values);
  }
  return result;
}

/// What a rounding that goes the other way in the interpreter may have become at the end of a body.
static double toleranceOf(const std::string &element, const std::string &source) {
  if (element == "bf16")
    return 4e-2;
  return element == "f16" || source.find("bf16") != std::string::npos ? 1e-2 : 2e-4;
}

void expectMeaning(const std::vector<Tensor> &outputs, const std::vector<Tensor> &expected,
                   const std::string &element, const std::string &source) {
  for (size_t o = 0; o < expected.size(); ++o) {
    double largest = 1;
    for (double value : expected[o].values)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    double tolerance = toleranceOf(element, source) * largest;
    for (size_t e = 0; e < expected[o].values.size(); ++e) {
      double x = outputs[o].values[e], y = expected[o].values[e];
      ASSERT_TRUE(x == y || std::abs(x - y) <= tolerance || (std::isnan(x) && std::isnan(y)))
          << "output " << o << " element " << e << ": " << x << " for " << y << "\n"
          << source;
    }
  }
}

} // namespace ds::test
