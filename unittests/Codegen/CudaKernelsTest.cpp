//===- CudaKernelsTest.cpp - Regions of models as CUDA kernels -----------------===//
//
// Sizes that models have and random bodies do not: rows that a block shares, rows too long for registers,
// columns cut into many tiles, tensors of any size, and functions of f64.
//
//===---------------------------------------------------------------------------===//
#include "CudaEmulator.h"
#include "ds/Codegen/CompileCuda.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace ds::test;
using testing::HasSubstr;

namespace {

using Sizes = std::vector<std::pair<int64_t, int64_t>>;

Tensor randomTensor(std::vector<int64_t> shape, unsigned seed, double low = -2, double high = 2) {
  Tensor result{shape, {}};
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> number(low, high);
  for (int64_t k = 0, count = result.size(); k < count; ++k)
    result.values.push_back(number(generator));
  return result;
}

std::string shapeOf(int64_t rows, int64_t size) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(size) + "xf32>";
}
std::string bufferOf(int64_t rows, int64_t size) {
  return "!ds.buffer<" + shapeOf(rows, size) + ", [" + std::to_string(size) + ", 1], device>";
}

/// Softmax over rows, and the sum of the squares of each row's result.
std::string softmaxKernel(int64_t rows, int64_t size) {
  std::string full = shapeOf(rows, size), row = "tensor<" + std::to_string(rows) + "xf32>";
  std::string toRow = " dims [1] : " + full + " -> " + row, toFull = " dims [0] : " + row + " -> " + full;
  return "ds.kernel @k inputs 1 buffers [" + bufferOf(rows, size) + ", " + bufferOf(rows, size) +
         ", !ds.buffer<" + row + ", [1], device>] {\n^bb0(%x: " + full + "):\n" + "  %m = ds.reduce max %x" +
         toRow + "\n  %mm = ds.broadcast %m" + toFull + "\n  %d = ds.sub %x, %mm : " + full +
         "\n  %e = ds.exp %d : " + full + "\n  %s = ds.reduce sum %e" + toRow + "\n  %ss = ds.broadcast %s" +
         toFull + "\n  %y = ds.div %e, %ss : " + full + "\n  %yy = ds.mul %y, %y : " + full +
         "\n  %q = ds.reduce sum %yy" + toRow + "\n  ds.yield %y, %q : " + full + ", " + row + "\n}\n";
}

/// Column sums, and every element less its column's sum.
std::string columnKernel(int64_t rows, int64_t size) {
  std::string full = shapeOf(rows, size), column = "tensor<" + std::to_string(size) + "xf32>";
  return "ds.kernel @k inputs 1 buffers [" + bufferOf(rows, size) + ", !ds.buffer<" + column +
         ", [1], device>, " + bufferOf(rows, size) + "] {\n^bb0(%x: " + full +
         "):\n  %s = ds.reduce sum %x dims [0] : " + full + " -> " + column +
         "\n  %ss = ds.broadcast %s dims [1] : " + column + " -> " + full +
         "\n  %y = ds.sub %x, %ss : " + full + "\n  ds.yield %s, %y : " + column + ", " + full + "\n}\n";
}

void expectMeaning(const std::string &text, const std::vector<Tensor> &inputs, double tolerance) {
  KernelHarness harness(text);
  CudaEmulator emulator(harness);
  ASSERT_TRUE(emulator.isLoaded());
  std::vector<Tensor> expected = harness.interpret("k", inputs);
  for (int64_t blocks : {0, 1}) {
    std::vector<Tensor> got = emulator.run("k", inputs, blocks);
    for (size_t o = 0; o < expected.size(); ++o)
      for (size_t e = 0; e < expected[o].values.size(); ++e)
        ASSERT_NEAR(got[o].values[e], expected[o].values[e], tolerance) << "output " << o << " element " << e;
  }
}

/// x * s + y, in place of y, for up to `items` pairs of any size.
std::string scaledSum(int64_t items) {
  std::string any = "tensor<?xf32>", buffer = "!ds.buffer<" + any + ", [1], device>";
  return "ds.kernel @k inputs 3 buffers [" + buffer + ", !ds.buffer<tensor<f32>, [], device>, " + buffer +
         ", " + buffer + "] items " + std::to_string(items) + " {\n^bb0(%x: " + any +
         ", %s: tensor<f32>, %y: " + any + "):\n  %ss = ds.broadcast %s dims [] : tensor<f32> -> " + any +
         "\n  %p = ds.mul %x, %ss : " + any + "\n  %r = ds.add %p, %y : " + any + "\n  ds.yield %r : " + any +
         "\n}\n";
}

TEST(CudaItems, EachHasItsElements) {
  // Whole vectors and not, nothing, a block's worth and one more; tables that are full, have one row, and
  // have rows that are no power of two.
  std::vector<int64_t> sizes = {1, 1023, 0, 1024, 1025, 3, 7000, 64};
  for (auto [items, capacity] : Sizes{{1, 1}, {8, 8}, {3, 8}, {7, 11}, {8, 39}}) {
    SCOPED_TRACE(testing::Message() << items << " items of " << capacity);
    KernelHarness harness(scaledSum(capacity));
    CudaEmulator emulator(harness);
    ASSERT_TRUE(emulator.isLoaded());
    std::vector<std::vector<Tensor>> inputs;
    for (int64_t k = 0; k < items; ++k)
      inputs.push_back(
          {randomTensor({sizes[k]}, 3 * k), Tensor{{}, {2}}, randomTensor({sizes[k]}, 3 * k + 1)});
    std::vector<int64_t> elements(sizes.begin(), sizes.begin() + items);
    for (int64_t blocks : {1, 3, 40}) {
      std::vector<std::vector<Tensor>> got = emulator.runItems("k", inputs, elements, blocks);
      for (int64_t k = 0; k < items; ++k)
        for (int64_t e = 0; e < sizes[k]; ++e)
          ASSERT_EQ(got[k][0].values[e], float(inputs[k][0].values[e] * 2 + inputs[k][2].values[e]))
              << "item " << k << " element " << e << " with " << blocks << " blocks";
    }
  }
}

TEST(CudaRows, OfEverySize) {
  // A part of a warp, a warp, blocks with idle threads, three copies in registers, and rows that are walked.
  for (auto [rows, size] :
       Sizes{{37, 12}, {9, 128}, {3, 500}, {5, 768}, {2, 1600}, {2, 3001}, {1400, 64}, {2, 20000}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << size);
    expectMeaning(softmaxKernel(rows, size), {randomTensor({rows, size}, 1)}, 2e-6);
  }
}

TEST(CudaRows, MappingFollowsTheRow) {
  auto mappingOf = [](int64_t rows, int64_t size) {
    KernelHarness harness(softmaxKernel(rows, size));
    return CudaEmulator(harness).mapping("k");
  };
  auto narrow = mappingOf(4096, 64); // 16 vectors of four: four threads with four each, 64 rows a block
  EXPECT_EQ(narrow.lanes, 4);
  EXPECT_EQ(narrow.rowThreads, 4);
  EXPECT_EQ(narrow.copies, 4);
  EXPECT_EQ(narrow.rowsPerBlock(), 64);
  auto model = mappingOf(8192, 768); // 192 vectors: 64 threads with three each
  EXPECT_EQ(model.blockThreads, 64);
  EXPECT_EQ(model.copies, 3);
  auto odd = mappingOf(64, 50257); // no vector divides the row, and it does not fit registers
  EXPECT_EQ(odd.lanes, 1);
  EXPECT_EQ(odd.copies, 0);
  EXPECT_EQ(odd.blockThreads, 512);
}

TEST(CudaColumns, OfEverySize) {
  for (auto [rows, size] : Sizes{{100, 12}, {300, 768}, {1, 40}, {1000, 5}, {33, 4099}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << size);
    expectMeaning(columnKernel(rows, size), {randomTensor({rows, size}, 1)}, 2e-3);
  }
}

/// The sum of a column as the mapping orders it: each thread its rows downwards, then halves on halves.
float sumInOrder(const Tensor &x, int64_t size, int64_t column,
                 const mlir::ds::codegen::CudaMapping &mapping) {
  const int64_t rows = x.size() / size;
  std::vector<float> totals(mapping.rowThreads, 0.0f);
  for (int64_t row = 0; row < rows; ++row)
    totals[row % mapping.rowThreads] += static_cast<float>(x.values[row * size + column]);
  for (int64_t half = mapping.rowThreads / 2; half > 0; half /= 2)
    for (int64_t thread = 0; thread < half; ++thread)
      totals[thread] += totals[thread + half];
  return totals[0];
}

// Rows for all threads alike, rows that are left over, and both.
TEST(CudaColumns, AddInOneOrderHoweverManyRowsAreUnderWay) {
  for (auto [rows, size] : Sizes{{256, 768}, {300, 768}, {1027, 768}, {100, 12}}) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << size);
    const Tensor x = randomTensor({rows, size}, 1);
    KernelHarness harness(columnKernel(rows, size));
    CudaEmulator emulator(harness);
    EXPECT_EQ(emulator.mapping("k").rowsAtOnce, 4);
    const std::vector<Tensor> got = emulator.run("k", {x});
    for (int64_t column = 0; column < size; ++column)
      ASSERT_EQ(static_cast<float>(got[0].values[column]), sumInOrder(x, size, column, emulator.mapping("k")))
          << column;
  }
}

TEST(CudaDynamic, WritesWholeVectorsAndWhatIsLeft) {
  KernelHarness harness(R"(ds.kernel @k inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>,
      !ds.buffer<tensor<?xbf16>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
    ^bb0(%x: tensor<?xf32>, %y: tensor<?xbf16>):
      %w = ds.convert %y : tensor<?xbf16> -> tensor<?xf32>
      %r = ds.mul %x, %w : tensor<?xf32>
      ds.yield %r : tensor<?xf32>
    })");
  CudaEmulator emulator(harness);
  EXPECT_EQ(emulator.mapping("k").lanes, 8);
  for (int64_t size : {0, 1, 7, 8, 17, 5003}) {
    std::vector<Tensor> inputs{randomTensor({size}, 1), Tensor{{size}, std::vector<double>(size, 1.5)}};
    for (int64_t blocks : {0, 1, 2}) {
      std::vector<Tensor> got = emulator.run("k", inputs, blocks, size);
      for (int64_t k = 0; k < size; ++k)
        ASSERT_EQ(got[0].values[k], float(inputs[0].values[k] * 1.5)) << k << " of " << size;
    }
  }
}

/// One function of f64 in a kernel.
std::vector<double> evaluate(const std::string &op, const std::vector<std::vector<double>> &arguments) {
  std::string buffer = "!ds.buffer<tensor<?xf64>, [1], device>", buffers, parameters, operands;
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < arguments.size(); ++k) {
    std::string name = "%a" + std::to_string(k), comma = k ? ", " : "";
    buffers += buffer + ", ";
    parameters += comma + name + ": tensor<?xf64>";
    operands += comma + name;
    inputs.push_back({{int64_t(arguments[k].size())}, arguments[k]});
  }
  KernelHarness harness("ds.kernel @k inputs " + std::to_string(arguments.size()) + " buffers [" + buffers +
                        buffer + "] {\n^bb0(" + parameters + "):\n  %r = ds." + op + " " + operands +
                        " : tensor<?xf64>\n  ds.yield %r : tensor<?xf64>\n}\n");
  CudaEmulator emulator(harness);
  return emulator.run("k", inputs, 0, arguments[0].size())[0].values;
}

void expectUnits(double got, double expected, double units, const std::string &what) {
  if (std::isnan(expected) || std::isinf(expected) || expected == 0) {
    EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
        << what << ": " << got << " for " << expected;
    return;
  }
  double unit = std::abs(std::nextafter(expected, INFINITY) - expected);
  EXPECT_LE(std::abs(got - expected), units * unit) << what << ": " << got << " for " << expected;
}

TEST(MathDoubles, OfOneArgument) {
  std::vector<double> arguments{0,      -0.0,  1,     -1,   INFINITY, -INFINITY, NAN,
                                1e-310, 1e300, 709.7, -745, 710,      -800};
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> number(-1, 1);
  for (int k = 0; k < 2000; ++k)
    arguments.push_back(number(generator) * std::pow(10, k % 6 - 3));
  auto check = [&](const char *op, double (*function)(double), double units, double most) {
    std::vector<double> got = evaluate(op, {arguments});
    for (size_t k = 0; k < arguments.size(); ++k)
      if (std::isnan(arguments[k]) || std::isinf(arguments[k]) || std::abs(arguments[k]) <= most)
        expectUnits(got[k], function(arguments[k]), units,
                    std::string(op) + " of " + std::to_string(arguments[k]));
  };
  check(
      "exp", [](double x) { return std::exp(x); }, 1.5, 705);
  check(
      "log", [](double x) { return std::log(x); }, 1, 1e300);
  check(
      "sin", [](double x) { return std::sin(x); }, 2, 1 << 20);
  check(
      "cos", [](double x) { return std::cos(x); }, 2, 1 << 20);
}

TEST(MathDoubles, Powers) {
  const double special[] = {0, -0.0, 1,   -1,       2,         -2,  0.5,  -0.5,
                            3, -3,   2.5, INFINITY, -INFINITY, NAN, 1e10, -1e10};
  std::vector<double> x, y;
  for (double a : special)
    for (double b : special)
      x.push_back(a), y.push_back(b);
  std::mt19937 generator(1);
  std::uniform_real_distribution<double> base(0, 3), power(-40, 40);
  for (int k = 0; k < 2000; ++k)
    x.push_back(base(generator)), y.push_back(k % 2 ? std::floor(power(generator)) : power(generator));
  for (double beta : {0.9, 0.95, 0.999}) // bias corrections
    for (int step = 1; step < 3000; step += 7)
      x.push_back(beta), y.push_back(step);
  std::vector<double> got = evaluate("pow", {x, y});
  for (size_t k = 0; k < x.size(); ++k)
    expectUnits(got[k], std::pow(x[k], y[k]), 2, std::to_string(x[k]) + " to " + std::to_string(y[k]));
}

TEST(CompileCuda, RefusesWhatTheDeviceCannotCompute) {
  KernelHarness harness(R"(ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<?xf64>, [1], device>,
      !ds.buffer<tensor<?xf64>, [1], device>] {
    ^bb0(%x: tensor<?xf64>):
      %r = ds.erf %x : tensor<?xf64>
      ds.yield %r : tensor<?xf64>
    })");
  std::vector<std::vector<uint32_t>> alignments{{16, 16}};
  auto compiled = mlir::ds::compileCudaKernels({harness.kernel("k")}, alignments, "sm_90");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, ds::ExitCode::Invalid);
  EXPECT_THAT(compiled.error().message, HasSubstr("'erf' of this type has no form for CUDA"));
}

TEST(CompileCuda, SaysWhatItsKernelsTouch) {
  KernelHarness harness(softmaxKernel(64, 768));
  std::vector<std::vector<uint32_t>> alignments{{16, 8, 4}};
  auto compiled = mlir::ds::compileCudaKernels({harness.kernel("k")}, alignments, "sm_80");
  ::ds::rt::Kernel kernel;
  mlir::ds::describeKernel(compiled->kernels[0], kernel);
  EXPECT_EQ(kernel.operands.size(), 3u);
  const std::string text(compiled->image.begin(), compiled->image.end());
  EXPECT_EQ(text.find("//ds " + ::ds::rt::spellInterface(kernel) + "\n"), 0u);
  EXPECT_THAT(::ds::rt::spellInterface(kernel), HasSubstr("persistent, alignments 16 8 4"));
}

TEST(CompileCuda, NarrowAlignmentsMakeNarrowAccesses) {
  KernelHarness harness(softmaxKernel(64, 768));
  auto textOf = [&](uint32_t alignment) {
    std::vector<std::vector<uint32_t>> alignments{{alignment, alignment, alignment}};
    auto compiled = mlir::ds::compileCudaKernels({harness.kernel("k")}, alignments, "sm_80");
    return std::string(compiled->image.begin(), compiled->image.end());
  };
  EXPECT_THAT(textOf(16), HasSubstr("ld.global.v"));
  EXPECT_THAT(textOf(4), testing::Not(HasSubstr("ld.global.v")));
  EXPECT_EQ(textOf(16), textOf(16));
}

} // namespace
