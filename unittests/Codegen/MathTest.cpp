//===- MathTest.cpp - Errors of the expanded functions, in ulps ----------------===//
//
// Every 1021st bit pattern of f32, and the special ones, against the double-precision function of libm.
//
//===---------------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace ds::test;

namespace {

struct Function {
  const char *name;
  double (*exact)(double);
  double maxUlps;
  double domain; ///< largest |x| for which the bound holds
};

std::ostream &operator<<(std::ostream &stream, const Function &function) { return stream << function.name; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }

/// Distance in units of the last place that f32 has at `expected`.
double ulpsBetween(float actual, double expected) {
  if (std::isnan(expected) || std::isnan(actual))
    return std::isnan(expected) && std::isnan(actual) ? 0 : HUGE_VAL;
  auto rounded = float(expected);
  if (std::isinf(rounded) || std::isinf(actual))
    return rounded == actual ? 0 : HUGE_VAL;
  int exponent = expected == 0 ? -126 : std::max(std::ilogb(expected), -126);
  return std::abs(double(actual) - expected) / std::ldexp(1.0, exponent - 23);
}

std::vector<float> arguments() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0.0f,       -0.0f,     infinity, -infinity, std::nanf(""), 0x1p-149f,
                            -0x1p-149f, 0x1p-126f, 1.0f,     -1.0f,     88.72f,        88.73f,
                            -87.34f,    -103.97f,  -104.0f,  -1e30f,    1e30f,         0x1p40f,
                            3.0e-6f,    0.34657f,  0.34658f, 4.1f,      9.01f,         -9.01f};
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 1021) {
    auto pattern = uint32_t(bits);
    float value;
    std::memcpy(&value, &pattern, sizeof value);
    values.push_back(value);
  }
  return values;
}

class MathFunction : public testing::TestWithParam<Function> {
protected:
  void check(const std::string &cpu) {
    Function function = GetParam();
    std::string type = "tensor<?xf32>", buffer = "!ds.buffer<" + type + ", [1], device>";
    KernelHarness harness("ds.kernel @f inputs 1 buffers [" + buffer + ", " + buffer +
                              "] {\n^bb0(%x: " + type + "):\n  %r = ds." + function.name + " %x : " + type +
                              "\n  ds.yield %r : " + type + "\n}",
                          cpu);
    ASSERT_TRUE(harness.isLoaded());
    std::vector<float> x = arguments(), y(x.size());
    void *buffers[] = {x.data(), y.data()};
    harness.function("f")(buffers, nullptr, 0, int64_t(x.size()));
    double worst = 0, at = 0;
    for (size_t k = 0; k < x.size(); ++k) {
      if (std::isfinite(x[k]) && std::abs(x[k]) > function.domain)
        continue;
      double ulps = ulpsBetween(y[k], function.exact(x[k]));
      if (!(ulps <= worst))
        worst = ulps, at = x[k];
    }
    EXPECT_LE(worst, function.maxUlps) << function.name << " at " << at;
    RecordProperty("ulps", std::to_string(worst));
    float negativeZero = -0.0f, result;
    void *one[] = {&negativeZero, &result};
    harness.function("f")(one, nullptr, 0, 1);
    EXPECT_EQ(std::signbit(result), std::signbit(function.exact(-0.0))) << function.name << "(-0)";
  }
};

TEST_P(MathFunction, IsAccurateOnThisMachine) { check("host"); }

/// Without fused multiply-add the same bounds hold but for a little.
TEST_P(MathFunction, RunsWithoutFma) {
  Function function = GetParam();
  std::string type = "tensor<33xf32>", buffer = "!ds.buffer<" + type + ", [1], device>";
  KernelHarness harness("ds.kernel @f inputs 1 buffers [" + buffer + ", " + buffer + "] {\n^bb0(%x: " + type +
                            "):\n  %r = ds." + function.name + " %x : " + type + "\n  ds.yield %r : " + type +
                            "\n}",
                        "x86-64");
  ASSERT_TRUE(harness.isLoaded());
  EXPECT_EQ(
      std::count(harness.compiled().target.features.begin(), harness.compiled().target.features.end(), "fma"),
      0);
  Tensor x{{33}, {}};
  for (int k = 0; k < 33; ++k)
    x.values.push_back(double(k) / 4 - 3.875);
  std::vector<Tensor> y = harness.run("f", {x});
  for (int k = 0; k < 33; ++k)
    EXPECT_LE(ulpsBetween(float(y[0].values[k]), function.exact(x.values[k])), function.maxUlps + 2)
        << x.values[k];
}

INSTANTIATE_TEST_SUITE_P(
    All, MathFunction,
    testing::Values(Function{"exp", std::exp, 1.0, HUGE_VAL}, Function{"log", std::log, 1.0, HUGE_VAL},
                    Function{"tanh", std::tanh, 2.5, HUGE_VAL}, Function{"erf", std::erf, 1.6, HUGE_VAL},
                    Function{"sigmoid", sigmoid, 2.2, 87.0}, Function{"sin", std::sin, 1.6, 0x1p40},
                    Function{"cos", std::cos, 1.6, 0x1p40}, Function{"sqrt", std::sqrt, 0.5001, HUGE_VAL},
                    Function{"rsqrt", rsqrt, 1.5, HUGE_VAL}, Function{"floor", std::floor, 0, HUGE_VAL}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
