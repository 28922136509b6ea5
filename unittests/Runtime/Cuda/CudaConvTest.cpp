//===- CudaConvTest.cpp - Convolutions by cuDNN and by the runtime's kernels ---------===//
#include "CudaFixture.h"

#include "../ConvReference.h"
#include "Program/Elements.h"

#include <cmath>
#include <random>

namespace ds::rt {
namespace {

using test::ConvCase;
using test::OneConv;
using testing::HasSubstr;
using testing::Not;

/// With the workspace that a plan gives it on a GPU.
OneConv convOnGpu(const ConvCase &c, LibraryFn fn, DType dtype) {
  OneConv conv(c, fn, dtype);
  conv.b.program.target = "cuda:sm_90";
  if (const uint64_t bytes = cudnnConvBytes(test::formOf(c, fn), dtype); bytes > 0)
    conv.workspace() = test::keepWorkspace(conv.b, static_cast<int64_t>(bytes));
  return conv;
}

class CudaConv : public test::CudaFixture {
protected:
  ~CudaConv() override { ::setenv("DS_CUDNN", DS_FAKE_CUDA, 1); }

  static std::vector<std::byte> bytesOf(const std::vector<double> &values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * byteSize(dtype));
    for (size_t i = 0; i < values.size(); ++i)
      storeElement(bytes.data() + i * byteSize(dtype), dtype, values[i]);
    return bytes;
  }

  /// Small integers in, whose sums are exact; the result is the definition's, rounded once.
  void check(const ConvCase &c, LibraryFn fn, DType dtype, const std::string &calls) {
    SCOPED_TRACE(testing::Message() << c.name << ", " << spell(fn) << " in " << spell(dtype));
    const OneConv conv = convOnGpu(c, fn, dtype);
    ASSERT_TRUE(verifyProgram(conv.b.program)) << verifyProgram(conv.b.program).error().message;
    dsFakeCalls();
    Status status = load(conv.b.program);
    ASSERT_TRUE(status) << status.error().message;
    std::mt19937 random(7);
    std::vector<std::vector<double>> values;
    for (uint32_t id : conv.operands) {
      std::vector<double> &list =
          values.emplace_back(static_cast<size_t>(numElements(conv.b.program.buffers[id])));
      for (double &value : list)
        value = static_cast<int>(random() % 7) - 3;
      put(id, bytesOf(list, dtype));
    }
    ASSERT_TRUE(executor->run(0));
    EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr(calls));
    const std::vector<std::byte> expected = bytesOf(test::convolve(c, fn, values), dtype);
    EXPECT_EQ(get<std::byte>(conv.operands[2], expected.size()), expected);
  }
};

TEST_F(CudaConv, EveryFormByCudnn) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1); // nothing is timed: the first engine is taken
  for (const ConvCase &c : test::convCases())
    if (c.input.size() < 3)
      for (LibraryFn fn : test::kConvFunctions)
        for (DType dtype : {DType::F32, DType::BF16, DType::F16})
          check(c, fn, dtype, "cudnnBackendExecute engine 3\n");
}

TEST_F(CudaConv, ThreeDimensionsByTheKernels) {
  for (const ConvCase &c : test::convCases())
    if (c.input.size() == 3)
      for (LibraryFn fn : test::kConvFunctions)
        check(c, fn, DType::BF16, "ds_conv_");
  EXPECT_THAT(device->describe(),
              HasSubstr("; convolutions by the runtime's kernels (no workspace is planned for it)"));
}

TEST_F(CudaConv, EveryFormByTheKernels) {
  ::setenv("DS_CUDNN", "0", 1);
  for (const ConvCase &c : test::convCases())
    for (LibraryFn fn : test::kConvFunctions)
      check(c, fn, DType::F32, "ds_conv_");
  EXPECT_THAT(device->describe(), HasSubstr("; convolutions by the runtime's kernels (DS_CUDNN is 0)"));
}

TEST_F(CudaConv, TakesNoMoreThanIsPlanned) {
  OneConv conv = convOnGpu(test::convCases()[0], LibraryFn::ConvForward, DType::BF16);
  ASSERT_TRUE(load(conv.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("; convolutions by cuDNN 9.19.0"));
  conv.b.program.buffers[conv.workspace()].shape[0] = 64; // the fake asks for 128
  ASSERT_TRUE(load(conv.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (cuDNN's engine needs"));
}

TEST_F(CudaConv, KeepsTheChoiceForLaterRuns) {
  const OneConv conv = convOnGpu(test::convCases()[1], LibraryFn::ConvBackwardWeight, DType::BF16);
  dsFakeCalls();
  ASSERT_TRUE(load(conv.b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cudnn heuristics"));
  ASSERT_TRUE(load(conv.b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cudnn heuristics")));
}

} // namespace
} // namespace ds::rt
