//===- CudaPartsTest.cpp - Columns in parts and their sums in one launch -------===//
//
// A kernel of two stages stands beside the two kernels that it is made of: what it stores is theirs to the
// bit, whatever the grid and whichever block is last, and its counters are 0 when it ends.
//
//===---------------------------------------------------------------------------===//
#include "CudaEmulator.h"
#include "ds/Codegen/CompileCuda.h"
#include "ds/Codegen/KernelStages.h"
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace ds::test;
using testing::HasSubstr;

namespace {

/// [rows, parts, columns...] whose rows are added up, and then the parts.
struct Shape {
  int64_t rows, parts;
  std::vector<int64_t> columns;
  std::string element;
  bool hasRows = false; ///< the second sum is of elements times a number of their row, as a gain's gradient

  int64_t numColumns() const {
    int64_t count = 1;
    for (int64_t size : columns)
      count *= size;
    return count;
  }
};

std::string tensorOf(std::vector<int64_t> sizes, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string bufferOf(const std::vector<int64_t> &sizes, const std::string &element) {
  std::string strides;
  int64_t stride = 1;
  for (size_t k = sizes.size(); k-- > 0; stride *= sizes[k])
    strides = std::to_string(stride) + (strides.empty() ? "" : ", ") + strides;
  return "!ds.buffer<" + tensorOf(sizes, element) + ", [" + strides + "], device>";
}

std::vector<int64_t> joined(std::vector<int64_t> first, const std::vector<int64_t> &rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

/// @parts and @sums, and @both, which is both of them.
std::string writeKernels(const Shape &s) {
  const std::vector<int64_t> all = joined({s.rows, s.parts}, s.columns), part = joined({s.parts}, s.columns);
  const std::string x = tensorOf(all, "f32"), p = tensorOf(part, "f32"), c = tensorOf(s.columns, "f32"),
                    r = tensorOf({s.rows, s.parts}, "f32"), narrow = tensorOf(s.columns, s.element),
                    given = tensorOf(all, s.element);
  const std::string wide = s.element == "f32" ? "%x" : "%w";
  std::string first = s.element == "f32" ? "" : "  %w = ds.convert %x : " + given + " -> " + x + "\n";
  first += "  %b = ds.broadcast %row dims [0, 1] : " + r + " -> " + x + "\n  %y = ds.mul " + wide +
           ", %b : " + x + "\n  %p = ds.reduce sum " + wide + " dims [0] : " + x + " -> " + p +
           "\n  %q = ds.reduce sum " + (s.hasRows ? "%y" : wide) + " dims [0] : " + x + " -> " + p + "\n";
  std::string second = "  %s = ds.reduce sum %p dims [0] : " + p + " -> " + c +
                       "\n  %t = ds.reduce sum %q dims [0] : " + p + " -> " + c +
                       "\n  %u = ds.add %t, %old : " + c + "\n";
  std::string result = "%s";
  if (s.element != "f32") {
    second += "  %v = ds.convert %s : " + c + " -> " + narrow + "\n";
    result = "%v";
  }
  const std::string bx = bufferOf(all, s.element), br = bufferOf({s.rows, s.parts}, "f32"),
                    bp = bufferOf(part, "f32"), bc = bufferOf(s.columns, "f32"),
                    bn = bufferOf(s.columns, s.element), comma = ", ";
  return "ds.kernel @parts inputs 2 buffers [" + bx + comma + br + comma + bp + comma + bp +
         "] {\n^bb0(%x: " + given + ", %row: " + r + "):\n" + first + "  ds.yield %p, %q : " + p + comma + p +
         "\n}\n" + "ds.kernel @sums inputs 3 buffers [" + bp + comma + bp + comma + bc + comma + bn + comma +
         bc + "] {\n^bb0(%p: " + p + ", %q: " + p + ", %old: " + c + "):\n" + second + "  ds.yield " +
         result + ", %u : " + narrow + comma + c + "\n}\n" + "ds.kernel @both inputs 3 buffers [" + bx +
         comma + br + comma + bc + comma + bp + comma + bp + comma + bn + comma + bc +
         "] {\n^bb0(%x: " + given + ", %row: " + r + ", %old: " + c + "):\n" + first + second +
         "  ds.yield %p, %q, " + result + ", %u : " + p + comma + p + comma + narrow + comma + c + "\n}\n";
}

Tensor randomTensor(std::vector<int64_t> shape, std::mt19937 &generator) {
  Tensor result{std::move(shape), {}};
  // 16 bits hold each, and 24 bits no sum of many: another order of additions gives other bits.
  std::uniform_int_distribution<int> number(-64, 64), power(-12, 0);
  for (int64_t k = 0, count = result.size(); k < count; ++k)
    result.values.push_back(std::ldexp(number(generator), power(generator)));
  return result;
}

void expectSameBits(const Tensor &got, const Tensor &expected, const std::string &what) {
  ASSERT_EQ(got.values.size(), expected.values.size()) << what;
  for (size_t k = 0; k < got.values.size(); ++k)
    ASSERT_EQ(std::memcmp(&got.values[k], &expected.values[k], sizeof(double)), 0)
        << what << ": element " << k << " is " << got.values[k] << " in place of " << expected.values[k];
}

/// Grids as full as the mapping asks for, and too small; blocks in three orders.
void expectTheTwoLaunches(CudaEmulator &emulator, KernelHarness &harness, const Shape &shape,
                          std::mt19937 &generator) {
  const Tensor x = randomTensor(joined({shape.rows, shape.parts}, shape.columns), generator),
               row = randomTensor({shape.rows, shape.parts}, generator),
               old = randomTensor(shape.columns, generator);
  std::vector<Tensor> expected = emulator.run("parts", {x, row});
  for (const Tensor &sum : emulator.run("sums", {expected[0], expected[1], old}))
    expected.push_back(sum);
  // At most 2048 products of numbers up to 64, in f32.
  const std::vector<Tensor> meant = harness.interpret("both", {x, row, old});
  for (size_t k = 0; k < meant[3].values.size(); ++k)
    ASSERT_NEAR(expected[3].values[k], meant[3].values[k], 0.5) << k;
  for (int64_t blocks : {0, 1, 5})
    for (int order : {0, 1, 2}) {
      emulator.order = nullptr;
      if (order == 1)
        emulator.order = [](int64_t turn, int64_t) { return turn; };
      if (order == 2) // 7919 is a prime that no grid here is a multiple of
        emulator.order = [](int64_t turn, int64_t count) { return (turn * 7919 + 3) % count; };
      const std::vector<Tensor> got = emulator.run("both", {x, row, old}, blocks);
      for (size_t k = 0; k < expected.size(); ++k)
        expectSameBits(got[k], expected[k],
                       "result " + std::to_string(k) + " with " + std::to_string(blocks) +
                           " blocks in order " + std::to_string(order));
    }
}

bool canLaunch(KernelHarness &harness) {
  std::string reason;
  return mlir::ds::canLaunchStages(harness.kernel("both"), reason);
}

TEST(CudaParts, AreTheTwoLaunchesToTheBit) {
  std::mt19937 generator(1);
  for (const Shape &shape :
       {Shape{64, 8, {192}, "bf16"}, Shape{128, 4, {192}, "bf16", true}, Shape{64, 8, {256}, "f32"},
        Shape{40, 4, {2, 64}, "f32", true}, Shape{32, 64, {16}, "f32"}, Shape{48, 4, {100}, "f32", true},
        Shape{32, 2, {203}, "bf16", true}, Shape{40, 32, {24}, "f16", true}}) {
    const std::string text = writeKernels(shape);
    SCOPED_TRACE(text);
    KernelHarness harness(text);
    ASSERT_TRUE(canLaunch(harness));
    CudaEmulator emulator(harness);
    ASSERT_TRUE(emulator.isLoaded());
    expectTheTwoLaunches(emulator, harness, shape, generator);
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST(CudaParts, OfRandomShapes) {
  std::mt19937 generator(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  };
  int launched = 0;
  for (int k = 0; k < 20; ++k) {
    Shape shape{pick(32, 80),
                int64_t(2) << pick(0, 4),
                {pick(1, 20) * (k % 3 ? 8 : 1)},
                k % 2 ? "bf16" : "f32",
                k % 4 != 1};
    if (k % 5 == 0)
      shape.columns.insert(shape.columns.begin(), pick(2, 3));
    const std::string text = writeKernels(shape);
    SCOPED_TRACE(text);
    KernelHarness harness(text);
    if (!canLaunch(harness))
      continue;
    ++launched;
    CudaEmulator emulator(harness);
    ASSERT_TRUE(emulator.isLoaded());
    expectTheTwoLaunches(emulator, harness, shape, generator);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GE(launched, 10) << "most random shapes stay two launches";
}

// 1003 columns of every row of all parts are one row of 2006, of which a strip of 8 lies in both parts.
TEST(CudaParts, StayApartWhereAStripIsOfTwoParts) {
  KernelHarness harness(writeKernels({32, 2, {1003}, "bf16", false}));
  std::string reason;
  EXPECT_FALSE(mlir::ds::canLaunchStages(harness.kernel("both"), reason));
  EXPECT_THAT(reason, HasSubstr("strips of columns"));
}

TEST(CudaParts, HaveTheFirstStagesLaunch) {
  KernelHarness harness(writeKernels({256, 16, {768}, "bf16", true}));
  CudaEmulator emulator(harness);
  const auto &both = emulator.mapping("both"), &parts = emulator.mapping("parts");
  EXPECT_EQ(both.extent, parts.extent);
  EXPECT_EQ(both.blockThreads, parts.blockThreads);
  EXPECT_EQ(both.rowThreads, parts.rowThreads);
}

/// The position of `text` in the PTX behind `from`, which must be there.
size_t find(const std::string &ptx, const std::string &text, size_t from = 0) {
  const size_t at = ptx.find(text, from);
  EXPECT_NE(at, std::string::npos) << text;
  return at;
}

TEST(CudaParts, CountBetweenBarriers) {
  KernelHarness harness(writeKernels({256, 16, {768}, "bf16", true}));
  const std::vector<std::vector<uint32_t>> alignments{std::vector<uint32_t>(7, 16)};
  for (const char *processor : {"sm_80", "sm_90"}) {
    auto compiled = mlir::ds::compileCudaKernels({harness.kernel("both")}, alignments, processor);
    ASSERT_TRUE(compiled);
    const std::string ptx(compiled->image.begin(), compiled->image.end());
    // 768 columns of 2 bytes in tiles of 64.
    find(ptx, ".global .align 4 .b8 both_counters[48];");
    const size_t count = find(ptx, "atom.acq_rel.gpu.global.inc.u32");
    EXPECT_LT(ptx.rfind("st.global", count), ptx.rfind("bar.sync", count));
    EXPECT_LT(find(ptx, "bar.sync", count), find(ptx, "ld.global", count));
    EXPECT_EQ(ptx.find("ld.global.nc"), std::string::npos)
        << "parts are written by the launch that reads them";
  }
}

} // namespace
