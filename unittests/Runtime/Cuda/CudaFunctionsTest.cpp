//===- CudaFunctionsTest.cpp - Library functions of CUDA on a device of host memory --===//
#include "CudaFixture.h"

#include <cmath>

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;

using Cuda = test::CudaFixture;

TEST_F(Cuda, FillsEveryType) {
  ProgramBuilder b;
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I8,
                      DType::U8, DType::Bool}) {
    const uint32_t id = b.keep({}, dtype), rest = b.keep({5}, dtype);
    b.library(LibraryFn::Fill, {id}, {bits(1)});
    b.library(LibraryFn::Fill, {rest}, {bits(1)});
    b.program.outputs.push_back({spell(dtype), id});
  }
  b.segment();
  b.program.target = "cuda:sm_90";
  ASSERT_TRUE(load(b.program));
  ASSERT_TRUE(executor->run(0));
  for (const Output &output : executor->program().outputs)
    EXPECT_EQ(readOutput(*executor, output), 1.0) << output.name;
  EXPECT_EQ(get<double>(3, 5), std::vector<double>(5, 1.0));
}

TEST_F(Cuda, CopiesStridedViews) {
  // Columns 1 and 2 of three matrices of 4 rows and 5 columns, to a packed [3, 4, 2].
  ProgramBuilder b;
  const uint32_t from = b.keep({60}), to = b.keep({3, 4, 2});
  const uint32_t view = b.view(from, 1, {3, 4, 2}, {20, 5, 1});
  b.library(LibraryFn::Copy, {view, to});
  b.segment();
  b.program.target = "cuda:sm_90";
  ASSERT_TRUE(load(b.program));
  std::vector<float> values(60);
  for (int i = 0; i < 60; ++i)
    values[i] = static_cast<float>(i);
  put(from, values);
  ASSERT_TRUE(executor->run(0));
  const std::vector<float> got = get<float>(to, 24);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 2; ++k)
        EXPECT_EQ(got[(i * 4 + j) * 2 + k], static_cast<float>(i * 20 + j * 5 + k + 1));
}

TEST_F(Cuda, TransposesByAKernel) {
  ProgramBuilder b;
  const uint32_t from = b.keep({4, 6}), to = b.keep({6, 4});
  const uint32_t view = b.view(from, 0, {6, 4}, {1, 6});
  b.library(LibraryFn::Copy, {view, to});
  b.segment();
  b.program.target = "cuda:sm_90";
  ASSERT_TRUE(load(b.program));
  std::vector<float> values(24);
  for (int i = 0; i < 24; ++i)
    values[i] = static_cast<float>(i);
  put(from, values);
  ASSERT_TRUE(executor->run(0));
  const std::vector<float> got = get<float>(to, 24);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 4; ++j)
      EXPECT_EQ(got[i * 4 + j], values[j * 6 + i]);
}

TEST_F(Cuda, LooksUpRowsByAKernelOfTheRuntime) {
  ProgramBuilder b;
  const uint32_t table = b.keep({5, 3}), ids = b.keep({2, 2}, DType::I64), out = b.keep({2, 2, 3});
  b.library(LibraryFn::EmbeddingForward, {table, ids, out});
  b.segment();
  b.program.target = "cuda:sm_90";
  ASSERT_TRUE(verifyProgram(b.program));
  Status status = load(b.program);
  ASSERT_TRUE(status) << status.error().message;
  put<float>(table, {0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42});
  put<int64_t>(ids, {3, 0, 4, 1});
  ASSERT_TRUE(executor->run(0));
  EXPECT_EQ(get<float>(out, 12), (std::vector<float>{30, 31, 32, 0, 1, 2, 40, 41, 42, 10, 11, 12}));
}

/// Two tensors of three blocks and one; the sums of these are in the workspace, and what lies beside it
/// stays.
TEST_F(Cuda, SumsUpSquaresByWayOfTheWorkspace) {
  ProgramBuilder b;
  const uint32_t x = b.keep({40000}), y = b.keep({3}), result = b.keep({}, DType::F64), sums = b.keep({4}),
                 beside = b.keep({4});
  b.library(LibraryFn::SumOfSquares, {x, y, result}, {});
  b.program.commands.back().workspace = sums;
  b.segment();
  b.program.target = "cuda:sm_90";
  ASSERT_TRUE(verifyProgram(b.program));
  Status status = load(b.program);
  ASSERT_TRUE(status) << status.error().message;
  put<float>(x, std::vector<float>(40000, 0.5f));
  put<float>(y, {1, 2, 3});
  put<float>(beside, {7, 7, 7, 7});
  ASSERT_TRUE(executor->run(0));
  EXPECT_EQ(get<float>(sums, 4), (std::vector<float>{4096, 4096, 1808, 14}));
  EXPECT_EQ(get<double>(result, 1), std::vector<double>{10014});
  EXPECT_EQ(get<float>(beside, 4), std::vector<float>(4, 7));
}

} // namespace
} // namespace ds::rt
