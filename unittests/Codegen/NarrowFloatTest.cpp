//===- NarrowFloatTest.cpp - Conversions of 16-bit floats, exhaustively --------===//
//
// Every f16 and bf16 is widened, and f32 and f64 numbers of all magnitudes, ties and their neighbours among
// them, are narrowed, for processors with and without instructions for it. The reference is LLVM's APFloat,
// through the harness.
//
//===---------------------------------------------------------------------------===//

#include "KernelHarness.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace ds::test;

namespace {

const char *const kProcessors[] = {"host", "x86-64-v3", "x86-64"};

std::string convertKernel(const std::string &name, int64_t count, const std::string &from,
                          const std::string &to) {
  auto tensor = [&](const std::string &type) { return "tensor<" + std::to_string(count) + "x" + type + ">"; };
  auto buffer = [&](const std::string &type) { return "!ds.buffer<" + tensor(type) + ", [1], device>"; };
  return "ds.kernel @" + name + " inputs 1 buffers [" + buffer(from) + ", " + buffer(to) +
         "] {\n^bb0(%x: " + tensor(from) + "):\n  %r = ds.convert %x : " + tensor(from) + " -> " +
         tensor(to) + "\n  ds.yield %r : " + tensor(to) + "\n}\n";
}

/// The same number, the same zero, or NaN both.
void expectSame(const Tensor &actual, const Tensor &expected, const std::vector<double> &inputs) {
  for (size_t k = 0; k < expected.values.size(); ++k) {
    double x = actual.values[k], y = expected.values[k];
    ASSERT_TRUE((std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0)
        << inputs[k] << " became " << x << ", expected " << y;
  }
}

/// Every 16-bit pattern as `type` reads it.
Tensor allNumbers(const std::string &type) {
  Tensor all{{65536}, {}};
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    bool isHalf = type == "f16";
    int exponent = isHalf ? bits >> 10 & 31 : bits >> 7 & 255, most = isHalf ? 31 : 255;
    double mantissa = isHalf ? (bits & 1023) / 1024.0 : (bits & 127) / 128.0;
    double number = exponent == most ? (mantissa == 0 ? INFINITY : NAN)
                    : exponent == 0  ? std::ldexp(mantissa, isHalf ? -14 : -126)
                                     : std::ldexp(1 + mantissa, exponent - (isHalf ? 15 : 127));
    all.values.push_back(bits >> 15 ? -number : number);
  }
  return all;
}

/// Numbers between and on the values of the narrow types: random bits, middles, and their neighbours.
Tensor hardNumbers(bool isDouble) {
  Tensor hard{{0}, {}};
  std::mt19937_64 random(7);
  auto add = [&](double x) { hard.values.push_back(isDouble ? x : double(float(x))); };
  for (const char *type : {"f16", "bf16"}) {
    Tensor all = allNumbers(type);
    for (size_t k = 0; k + 1 < all.values.size(); k += 3) {
      double middle = (all.values[k] + all.values[k + 1]) / 2;
      add(middle);
      add(isDouble ? std::nextafter(middle, INFINITY) : std::nextafterf(float(middle), INFINITY));
      add(isDouble ? std::nextafter(middle, -INFINITY) : std::nextafterf(float(middle), -INFINITY));
    }
  }
  for (int k = 0; k < 50000; ++k) {
    uint32_t word = uint32_t(random());
    float number;
    std::memcpy(&number, &word, sizeof number);
    add(number);
    if (isDouble)
      add(number * (1 + 1e-12 * double(random() % 1000)));
  }
  for (double x : {0.0, -0.0, 65504.0, 65519.9, 65520.0, 3.4e38, 3.3961e38, 1e300, -1e300, 1e-320})
    add(x);
  hard.shape = {hard.size() == 0 ? 0 : int64_t(hard.values.size())};
  return hard;
}

class NarrowFloat : public testing::TestWithParam<const char *> {};

TEST_P(NarrowFloat, WidensEveryNumber) {
  KernelHarness harness(convertKernel("bf16", 65536, "bf16", "f32") +
                            convertKernel("f16", 65536, "f16", "f32") +
                            convertKernel("far", 65536, "f16", "f64"),
                        GetParam());
  ASSERT_TRUE(harness.isLoaded());
  for (const char *name : {"bf16", "f16", "far"}) {
    Tensor all = allNumbers(std::strcmp(name, "bf16") == 0 ? "bf16" : "f16");
    expectSame(harness.run(name, {all})[0], all, all.values);
  }
}

TEST_P(NarrowFloat, RoundsToNearestEven) {
  for (const char *from : {"f32", "f64"}) {
    Tensor hard = hardNumbers(std::strcmp(from, "f64") == 0);
    int64_t count = hard.shape[0];
    KernelHarness harness(
        convertKernel("bf16", count, from, "bf16") + convertKernel("f16", count, from, "f16"), GetParam());
    ASSERT_TRUE(harness.isLoaded());
    for (const char *to : {"bf16", "f16"})
      expectSame(harness.run(to, {hard})[0], harness.interpret(to, {hard})[0], hard.values);
  }
}

/// Vectors of every width, and scalars.
TEST_P(NarrowFloat, ConvertsShortTensors) {
  for (int64_t count : {1, 2, 3, 5, 8, 11}) {
    KernelHarness harness(
        convertKernel("to", count, "f32", "f16") + convertKernel("back", count, "f16", "f32") +
            convertKernel("across", count, "f16", "bf16") + convertKernel("count", count, "i64", "bf16"),
        GetParam());
    ASSERT_TRUE(harness.isLoaded());
    Tensor x{{count}, {}};
    for (int64_t k = 0; k < count; ++k)
      x.values.push_back(double(k * 33 - 40));
    for (const char *name : {"to", "back", "across", "count"})
      expectSame(harness.run(name, {x})[0], harness.interpret(name, {x})[0], x.values);
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, NarrowFloat, testing::ValuesIn(kProcessors),
                         [](const auto &info) { return "p" + std::to_string(info.index); });

/// Each op rounds to its own type, and sums are f32 until their end: 300 ones are more than bf16 can count.
TEST(NarrowFloat, SumsInSinglePrecision) {
  for (const char *cpu : kProcessors) {
    KernelHarness harness(R"(
      ds.kernel @rows inputs 1 buffers [!ds.buffer<tensor<3x300xbf16>, [300, 1], device>, !ds.buffer<tensor<3xbf16>, [1], device>] {
      ^bb0(%x: tensor<3x300xbf16>):
        %s = ds.reduce sum %x dims [1] : tensor<3x300xbf16> -> tensor<3xbf16>
        ds.yield %s : tensor<3xbf16>
      }
      ds.kernel @columns inputs 1 buffers [!ds.buffer<tensor<3000x3xf16>, [3, 1], device>, !ds.buffer<tensor<3xf16>, [1], device>] {
      ^bb0(%x: tensor<3000x3xf16>):
        %s = ds.reduce sum %x dims [0] : tensor<3000x3xf16> -> tensor<3xf16>
        ds.yield %s : tensor<3xf16>
      })",
                          cpu);
    ASSERT_TRUE(harness.isLoaded());
    EXPECT_EQ(harness.run("rows", {Tensor{{3, 300}, std::vector<double>(900, 1)}})[0].values[1], 300);
    EXPECT_EQ(harness.run("columns", {Tensor{{3000, 3}, std::vector<double>(9000, 1)}})[0].values[2], 3000);
  }
}

} // namespace
