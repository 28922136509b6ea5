//===- CudaAttentionTest.cpp - Attention by cuDNN and by the runtime's kernels -------- ---===//
#include "CudaAttentionFixture.h"

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using testing::HasSubstr;
using testing::Not;

TEST_F(CudaAttention, EveryForm) {
  check({});
  check({.causal = false});
  check({.groups = 2});
  check({.groups = 1, .dtype = DType::F16});
  check({.rows = 13, .size = 24});
  check({.groups = 2, .joined = true});
}

TEST_F(CudaAttention, MoreKeysThanQueries) {
  check({.moreKeys = 8});
  check({.rows = 5, .groups = 2, .moreKeys = 1});
}

/// Each block is a run of an engine and a launch that adds up its parts.
TEST_F(CudaAttention, LongGradientsInBlocks) {
  const std::string step = "cudnnBackendExecute engine 2\ncuLaunchKernel ds_attention_parts_bf16";
  const auto in = [](int64_t rows, int64_t block) {
    return Form{.batch = 1, .rows = rows, .heads = 2, .groups = 2, .block = block};
  };
  check(in(32, 8), step);
  check(in(20, 8), step); // the last row of blocks is shorter
  Form form = in(20, 8);
  form.causal = false;
  check(form, step);
  form = {.batch = 2, .rows = 24, .groups = 2, .dtype = DType::F16, .joined = true, .block = 16};
  check(form, "cudnnBackendExecute engine 2\ncuLaunchKernel ds_attention_parts_f16");
  form = {.batch = 1,
          .rows = 16,
          .groups = 1,
          .moreKeys = 13,
          .block = 8}; // the keys before all queries are 8 and 5
  check(form, step);
  form = {.batch = 2, .rows = 20, .causal = false, .moreKeys = 4, .mask = {2, 4, 20, 24}, .block = 16};
  check(form, step);
  form.causal = true;
  form.mask = {1, 1, 20, 24};
  check(form, step);
}

/// 1 + 2 + 3 + 4 blocks for each of two key heads; two engines, of which each chooses once.
TEST_F(CudaAttention, BlocksShareTwoEngines) {
  Attention a{{.batch = 1, .rows = 32, .heads = 2, .groups = 2, .block = 8}};
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  const auto count = [](const std::string &text, const std::string &what) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
      ++found;
    return found;
  };
  EXPECT_EQ(count(dsFakeCalls(), "cudnn compiles"), 2u + 2 * 2)
      << "two candidates of forward, and of each block";
  EXPECT_THAT(device->describe(), Not(HasSubstr("of 2 commands")));
  ASSERT_TRUE(executor->run(0));
  EXPECT_EQ(count(dsFakeCalls(), "ds_attention_parts_bf16"), 20u);
}

/// Where one of the engines does not run, kernels compute all of it.
TEST_F(CudaAttention, BlocksWithoutAnEngineAreTheKernels) {
  Attention a{{.batch = 1, .rows = 32, .heads = 2, .groups = 2, .block = 8}};
  ::setenv("DS_FAKE_ENGINES", "0", 1);
  ASSERT_TRUE(load(a.b.program));
  ::unsetenv("DS_FAKE_ENGINES");
  EXPECT_THAT(device->describe(), HasSubstr("attention by the runtime's kernels (none of 2"));
  dsFakeCalls();
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, HasSubstr("ds_attention_dkdv_bf16"));
  EXPECT_THAT(calls, Not(HasSubstr("ds_attention_parts")));
}

TEST_F(CudaAttention, PiecesOfTheBatch) {
  // A sample's gradients: 4 heads * 16 rows * 4 + 4 * 64 * 128 * 2 + 512 = 66304 bytes, so two samples are
  // two pieces.
  check({.workspace = 66304}, kTwice);
}

TEST_F(CudaAttention, PiecesOfTheHeads) {
  // Of one sample two of four key heads, each with two query heads.
  // 4 * 16 * 4 + 4 * 64 * 128 * 2 + 4 * 4 * 128 * 8 + 512 = 82688.
  check({.batch = 1, .heads = 8, .groups = 4, .workspace = 82688}, kTwice);
}

TEST_F(CudaAttention, LeavesTheRestToTheKernels) {
  dsFakeCalls();
  ASSERT_TRUE(load(Attention({.size = 12}).b.program));
  EXPECT_THAT(
      device->describe(),
      HasSubstr(
          "; attention by the runtime's kernels (cuDNN is not asked for heads that are no multiple of 8"));
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  EXPECT_THAT(calls, Not(HasSubstr("cudnnBackendExecute")));
  EXPECT_THAT(calls, HasSubstr("ds_attention_forward_bf16"));
}

TEST_F(CudaAttention, TakesNoMoreThanIsPlanned) {
  Attention a{Form{}};
  for (Command &command : a.b.program.commands)
    command.workspace = UINT32_MAX;
  ASSERT_TRUE(load(a.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (no workspace is planned for it)"));
  // One head cannot be cut.
  Attention b{{.batch = 1, .heads = 1, .groups = 1}};
  b.b.program.buffers[b.b.program.commands[1].workspace].shape[0] -= 256;
  ASSERT_TRUE(load(b.b.program));
  EXPECT_THAT(device->describe(),
              HasSubstr("cuDNN 9.19.0 in 1 of 2 commands (no workspace is planned for it)"));
}

TEST_F(CudaAttention, TimesNothingThatItCannotKeep) {
  ::setenv("DS_CACHE_DIR", "/proc/nowhere", 1);
  dsFakeCalls();
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cudnnBackendExecute")));
  ASSERT_TRUE(executor->run(0));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cudnnBackendExecute engine 3\n")); // the first
}

TEST_F(CudaAttention, KeepsTheChoiceForLaterRuns) {
  dsFakeCalls();
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  const std::string first = dsFakeCalls();
  EXPECT_THAT(first, HasSubstr("cudnn heuristics"));
  EXPECT_THAT(first, HasSubstr("cudnnBackendExecute engine 3\n")); // both are timed
  EXPECT_THAT(first, HasSubstr("cudnnBackendExecute engine 2\n"));
  EXPECT_THAT(device->describe(), HasSubstr("; attention by cuDNN 9.19.0"));
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  const std::string second = dsFakeCalls();
  EXPECT_THAT(second, HasSubstr("cudnn compiles"));
  EXPECT_THAT(second, Not(HasSubstr("cudnn heuristics")));
  EXPECT_THAT(second, Not(HasSubstr("cudnnBackendExecute")));
}

TEST_F(CudaAttention, LeavesItToTheKernelsWhereNoEngineRuns) {
  ::setenv("DS_FAKE_ENGINES", "0", 1);
  ASSERT_TRUE(load(Attention(Form()).b.program));
  ::unsetenv("DS_FAKE_ENGINES");
  EXPECT_THAT(device->describe(),
              HasSubstr("attention by the runtime's kernels (none of 2 candidates runs; engine 3."));
  EXPECT_EQ(std::filesystem::file_size(cache + "/choices"), 0u) << "nothing is kept";
  ASSERT_TRUE(executor->run(0));
}

TEST_F(CudaAttention, CompilesOncePerForm) {
  // The scale is no part of an engine: forward and backward are two forms.
  Attention a{Form{}};
  const uint32_t workspace = a.b.program.commands[1].workspace;
  a.b.library(LibraryFn::AttentionBackward, {a.q, a.k, a.v, a.out, a.lse, a.dout, a.dq, a.dk, a.dv},
              {1, bits(0.5)});
  a.b.program.commands.back().workspace = workspace;
  a.b.program.segments[0].numCommands = 3;
  dsFakeCalls();
  ASSERT_TRUE(load(a.b.program));
  const std::string calls = dsFakeCalls(), compiles = "cudnn compiles";
  size_t compiled = 0;
  for (size_t at = 0; (at = calls.find(compiles, at)) != std::string::npos; at += compiles.size())
    ++compiled;
  EXPECT_EQ(compiled, 4u); // two engines each
}

TEST_F(CudaAttention, DoesWithoutALibraryThatIsMissingOrOld) {
  ::setenv("DS_CUDNN", "/nowhere/libcudnn.so.9", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (fast attention needs cuDNN 9.16 or later: /nowhere"));
  ::setenv("DS_CUDNN", DS_FAKE_CUDA, 1);
  ::setenv("DS_FAKE_CUDNN", "91500", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (cuDNN has version 9.15.0, but 9.16.0 is needed)"));
  ::setenv("DS_CUDNN", "0", 1);
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (DS_CUDNN is 0)"));
}

TEST_F(CudaAttention, CanBeRecorded) {
  const Form form;
  Attention a(form);
  prepare(a, form.dtype);
  std::vector<std::vector<uint16_t>> gradients;
  for (int step = 0; step < 3; ++step) {
    dsFakeCalls();
    ASSERT_TRUE(executor->runStep([](uint32_t) { return Status(); }));
    gradients.push_back(get<uint16_t>(a.dq, 2 * 16 * 4 * 8));
  }
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cuGraphLaunch"));
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0], gradients[2]);
}

} // namespace
} // namespace ds::rt
