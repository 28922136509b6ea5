//===- ConvTest.cpp - Convolutions through the oneDNN plugin -------------------===//
//
// One-command programs against the definition in double. The numbers are small integers, so that every order
// of summation gives the same result and the comparison is exact, but for the one rounding to 16 bits.
//
//===---------------------------------------------------------------------------===//
#include "ConvReference.h"
#include "Program/Elements.h"

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Onednn/OnednnConv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace ds::rt {
namespace {

using test::ConvCase;
using test::OneConv;
using testing::HasSubstr;

/// With the workspace that a plan gives it on the CPU, or a smaller one.
OneConv convOnCpu(const ConvCase &c, LibraryFn fn, DType dtype, uint64_t fewerBytes = 0) {
  OneConv conv(c, fn, dtype);
  const Result<ConvWorkspace> layout =
      layoutConvWorkspace(test::formOf(c, fn), dtype, conv.b.program.threads);
  EXPECT_TRUE(layout) << layout.error().message;
  const auto bytes = std::max<int64_t>(1, static_cast<int64_t>(layout->bytes - fewerBytes));
  conv.workspace() = test::keepWorkspace(conv.b, bytes);
  return conv;
}

std::vector<double> read(const Executor &e, uint32_t id) {
  const Buffer &buffer = e.program().buffers[id];
  std::vector<double> values;
  for (int64_t i = 0; i < numElements(buffer); ++i)
    values.push_back(
        loadElement(static_cast<std::byte *>(e.data(id)) + i * byteSize(buffer.dtype), buffer.dtype));
  return values;
}

void check(const ConvCase &c, LibraryFn fn, DType dtype) {
  SCOPED_TRACE(testing::Message() << c.name << ", " << spell(fn) << " in " << spell(dtype));
  OneConv conv = convOnCpu(c, fn, dtype);
  ASSERT_TRUE(verifyProgram(conv.b.program)) << verifyProgram(conv.b.program).error().message;
  auto loaded = Executor::load(conv.b.program);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Executor &e = **loaded;
  const uint32_t workspace = conv.workspace();
  std::memset(e.data(workspace), 0xff, extentBytes(conv.b.program.buffers[workspace])); // NaN
  std::mt19937 random(1);
  std::vector<std::vector<double>> values;
  for (uint32_t id : conv.operands) {
    for (int64_t i = 0; i < numElements(conv.b.program.buffers[id]); ++i)
      storeElement(static_cast<std::byte *>(e.data(id)) + i * byteSize(dtype), dtype, int(random() % 9) - 4);
    values.push_back(read(e, id));
  }
  std::vector<double> expected = test::convolve(c, fn, values);
  for (double &value : expected) { // as an element of this type holds it
    std::byte bytes[8];
    storeElement(bytes, dtype, value);
    value = loadElement(bytes, dtype);
  }
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(e.run(0));
    EXPECT_EQ(read(e, conv.operands[2]), expected) << "run " << run;
  }
}

class Convolutions : public testing::TestWithParam<DType> {};

TEST_P(Convolutions, AreWhatTheirDefinitionSays) {
  for (const ConvCase &c : test::convCases())
    for (LibraryFn fn : test::kConvFunctions)
      check(c, fn, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, Convolutions, testing::Values(DType::F32, DType::BF16, DType::F16),
                         [](const auto &info) { return spell(info.param); });

TEST(Convolution, NeedsThePlannedWorkspace) {
  const ConvCase c = test::convCases()[1];
  for (LibraryFn fn : test::kConvFunctions)
    for (DType dtype : {DType::F32, DType::BF16}) {
      const OneConv conv = convOnCpu(c, fn, dtype, 64);
      auto loaded = Executor::load(conv.b.program);
      ASSERT_FALSE(loaded);
      EXPECT_THAT(loaded.error().message, HasSubstr("bytes of workspace, but"));
      EXPECT_THAT(loaded.error().hint, HasSubstr("compile the model on this machine"));
    }
}

TEST(Convolution, CopiesOf16BitsLieBehindTheLibrarysPart) {
  ConvForm form{};
  form.kind = ConvKind::Forward;
  form.dims = form.bias = 1;
  form.batch = form.groups = form.stride[0] = form.dilation[0] = 1;
  form.inputChannels = 2, form.outputChannels = 3;
  form.input[0] = 8, form.window[0] = 3, form.output[0] = 6;
  const Result<ConvWorkspace> wide = layoutConvWorkspace(form, DType::F32, 2),
                              narrow = layoutConvWorkspace(form, DType::F16, 2);
  ASSERT_TRUE(wide && narrow);
  EXPECT_EQ(wide->bytes, (wide->libraryBytes + 63) / 64 * 64);
  // 2 * 8 * 4 = 64, 3 * 2 * 3 * 4 = 72, 3 * 6 * 4 = 72 and 3 * 4 = 12 bytes, in lines of 64
  EXPECT_EQ(narrow->bytes, wide->bytes + 64 + 128 + 128 + 64);
  EXPECT_EQ(narrow->widened[3], narrow->bytes - 64);
}

} // namespace
} // namespace ds::rt
