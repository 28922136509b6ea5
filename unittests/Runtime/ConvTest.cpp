//===- ConvTest.cpp - Convolutions through the oneDNN plugin -------------------===//
//
// One-command programs against the definition in double. The numbers are small integers, so that every order
// of summation gives the same result and the comparison is exact, but for the one rounding to 16 bits.
//
//===---------------------------------------------------------------------------===//
#include "ConvReference.h"
#include "Convert.h"
#include "ProgramBuilder.h"

#include "ds/Runtime/Executor.h"
#include "ds/Runtime/OnednnConv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace ds::rt {
namespace {

using test::ConvCase;
using test::ProgramBuilder;
using testing::HasSubstr;

/// A program of one convolution, and what it works on.
struct OneConv {
  ProgramBuilder b;
  std::vector<uint32_t> operands;
  uint32_t workspace;

  OneConv(const ConvCase &c, LibraryFn fn, DType dtype, uint64_t fewerBytes = 0) {
    std::vector<const Buffer *> buffers;
    for (const std::vector<int64_t> &shape : c.operandShapes(fn))
      operands.push_back(b.keep(shape, dtype));
    for (uint32_t id : operands)
      buffers.push_back(&b.program.buffers[id]);
    const std::vector<int64_t> params = c.params();
    const Result<ConvWorkspace> layout =
        layoutConvWorkspace(describeConv(fn, buffers, params.data()), dtype, b.program.threads);
    EXPECT_TRUE(layout) << layout.error().message;
    workspace = b.keep({std::max<int64_t>(1, static_cast<int64_t>(layout->bytes - fewerBytes))}, DType::U8);
    b.library(fn, operands, params).workspace = workspace;
    b.segment(SegmentKind::Last);
  }
};

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
  const OneConv conv(c, fn, dtype);
  ASSERT_TRUE(verifyProgram(conv.b.program)) << verifyProgram(conv.b.program).error().message;
  auto loaded = Executor::load(conv.b.program);
  ASSERT_TRUE(loaded) << loaded.error().message;
  Executor &e = **loaded;
  std::memset(e.data(conv.workspace), 0xff, extentBytes(conv.b.program.buffers[conv.workspace])); // NaN
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
      const OneConv conv(c, fn, dtype, 64);
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
