//===- CudaAttentionFormsTest.cpp - Masks, windows, dropout and fast gradients by cuDNN ---===//
#include "CudaAttentionFixture.h"

namespace ds::rt {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Each piece's sums are cleared before its run, and need no memory for scores.
TEST_F(CudaAttention, FastGradients) {
  check({.fast = true});
  check({.rows = 13, .groups = 2, .size = 24, .dtype = DType::F16, .fast = true});
  check({.groups = 2, .joined = true, .moreKeys = 0, .fast = true});
  check({.rows = 5, .groups = 2, .moreKeys = 1, .fast = true});
  check({.causal = false, .mask = {2, 4, 16, 16}, .fast = true});
  // A sample's gradients: 4 heads * 16 rows * 4, twice 4 * 64 rows * 8 elements * 4, and 512.
  check({.workspace = 17152, .fast = true},
        "cudnnBackendExecute engine 2\ncuMemset 1\ncudnnBackendExecute engine 2\n");
}

/// An engine of exact gradients is none for fast ones, nor is its choice. The head of a run says so.
TEST_F(CudaAttention, FastGradientsHaveChoicesOfTheirOwn) {
  ASSERT_TRUE(load(Attention{Form{}}.b.program));
  EXPECT_THAT(device->describe(), Not(HasSubstr("differ in bits")));
  dsFakeCalls();
  ASSERT_TRUE(load(Attention({.fast = true}).b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), HasSubstr("cudnn heuristics"));
  EXPECT_THAT(device->describe(), HasSubstr("attention by cuDNN 9.19.0, fast: two runs may differ in bits"));
  dsFakeCalls();
  ASSERT_TRUE(load(Attention({.fast = true}).b.program));
  EXPECT_THAT(std::string(dsFakeCalls()), Not(HasSubstr("cudnn heuristics")));
}

TEST_F(CudaAttention, WindowsCapsAndSlopes) {
  check({.window = 5});
  check({.window = 1});
  check({.window = 100}); // hides nothing
  check({.causal = false, .window = 5});
  check({.groups = 2, .moreKeys = 8, .window = 6});
  check({.causal = false, .moreKeys = 8, .window = 6});
  check({.rows = 20, .causal = false, .moreKeys = -8, .window = 9}); // the first query sees one key
  check({.cap = 0.75});
  check({.groups = 1, .dtype = DType::F16, .window = 7, .cap = 1.5});
  check({.slopes = true});
  check({.causal = false, .mask = {1, 4, 16, 16}, .window = 9, .cap = 2, .slopes = true});
  check({.fast = true, .window = 5, .cap = 0.75, .slopes = true});
  // Pieces of the heads have the slopes of theirs.
  check({.batch = 1, .heads = 8, .groups = 4, .workspace = 82688, .window = 3, .slopes = true}, kTwice);
}

/// A kernel draws what is left of a piece's probabilities, the CPU's numbers, before each of its runs.
TEST_F(CudaAttention, Dropout) {
  const std::string run = "cuLaunchKernel ds_attention_mask_bf16", engine = "cudnnBackendExecute engine 2\n";
  check({.dropout = 0.25}, run);
  EXPECT_THAT(device->describe(), Not(HasSubstr("kernels")));
  check({.rows = 13, .groups = 2, .size = 24, .dtype = DType::F16, .moreKeys = 2, .dropout = 0.5},
        "cuLaunchKernel ds_attention_mask_f16");
  check({.causal = false, .mask = {2, 4, 16, 16}, .cap = 2, .dropout = 0.1}, run);
  check({.fast = true, .window = 5, .dropout = 0.1}, run);
  // Pieces of a sample, and of two key heads with two query heads each: 2 bytes for each of 4 * 16 * 16 more.
  check({.workspace = 68352, .dropout = 0.3}, run);
  check({.batch = 1, .heads = 8, .groups = 4, .workspace = 84736, .dropout = 0.3}, run);
}

/// With a window a block has the keys that its queries see, else as many keys as queries. Slopes count from a
/// block's own rows and columns, and dropout draws the numbers of its part of the matrix.
TEST_F(CudaAttention, LongFormsInBlocks) {
  const std::string run = "cudnnBackendExecute engine 2\n", parts = "cuLaunchKernel ds_attention_parts_bf16";
  const auto in = [](Form form) {
    form.block = 8;
    return form;
  };
  check(in({.rows = 36, .cap = 0.75}), run + parts);
  check(in({.rows = 36, .groups = 2, .causal = false, .cap = 1.5}), run + parts);
  check(in({.rows = 36, .slopes = true}), "cuLaunchKernel ds_attention_shift");
  check(in({.rows = 20, .groups = 2, .causal = false, .mask = {2, 4, 20, 20}, .cap = 2, .slopes = true}));
  for (const int64_t window : {1, 3, 8, 11, 30, 60}) {
    check(in({.rows = 36, .window = window}), run + parts);
    check(in({.rows = 36, .groups = 2, .causal = false, .window = window}), run + parts);
  }
  check(in({.rows = 20, .groups = 2, .dtype = DType::F16, .joined = true, .window = 5, .slopes = true}));
  check(in({.rows = 20, .moreKeys = 13, .window = 6}), run + parts); // the first keys are seen by nobody
  check(in({.rows = 20, .causal = false, .moreKeys = 12, .mask = {2, 4, 20, 32}, .window = 9}), run + parts);
  check(in({.rows = 28, .causal = false, .moreKeys = -8, .window = 9}), run + parts);
  const std::string drawn = "cuLaunchKernel ds_attention_mask_bf16";
  check(in({.rows = 20, .dropout = 0.25}), drawn);
  check(in({.rows = 20, .groups = 2, .causal = false, .dropout = 0.25}), drawn);
  check(in({.rows = 20, .window = 5, .slopes = true, .dropout = 0.5}), drawn);
  check(in({.rows = 20, .groups = 1, .moreKeys = 8, .cap = 2, .dropout = 0.1}), drawn);
}

/// 36 queries in blocks of 8 that see 5 keys each: five blocks of 8, 16 and 4 of engines' sizes, and not the
/// fifteen of all causal ones.
TEST_F(CudaAttention, AWindowLeavesFewBlocks) {
  const Attention a{{.batch = 1, .rows = 36, .heads = 1, .groups = 1, .block = 8, .window = 5}};
  ASSERT_TRUE(load(a.b.program));
  dsFakeCalls();
  ASSERT_TRUE(executor->run(0));
  const std::string calls = dsFakeCalls();
  size_t parts = 0;
  for (size_t at = 0; (at = calls.find("ds_attention_parts", at)) != std::string::npos; ++at)
    ++parts;
  EXPECT_EQ(parts, 5u);
}

TEST_F(CudaAttention, LeavesQueriesThatSeeNothingToTheKernels) {
  ASSERT_TRUE(load(Attention({.rows = 20, .causal = false, .moreKeys = -8, .window = 8}).b.program));
  EXPECT_THAT(device->describe(), HasSubstr("kernels (cuDNN is not asked for queries that see no key)"));
  ASSERT_TRUE(load(Attention({.moreKeys = 8, .slopes = true}).b.program));
  EXPECT_THAT(device->describe(),
              HasSubstr("kernels (cuDNN is not asked for slopes of positions with more keys"));
}

TEST_F(CudaAttention, MasksInMemory) {
  check({.causal = false, .mask = {2, 4, 16, 16}});
  check({.causal = false, .mask = {1, 1, 16, 16}});
  check({.causal = false, .mask = {2, 1, 1, 16}});
  check({.groups = 2, .causal = false, .dtype = DType::F16, .moreKeys = 16, .mask = {1, 4, 16, 32}});
  // Two pieces of the batch, and two of the heads, each with its part of the mask.
  check({.causal = false, .workspace = 66304, .mask = {2, 4, 16, 16}}, kTwice);
  check({.batch = 1, .heads = 8, .groups = 4, .causal = false, .workspace = 82688, .mask = {1, 8, 1, 16}},
        kTwice);
}

TEST_F(CudaAttention, LeavesMasksThatNoPieceCanStartAt) {
  ASSERT_TRUE(load(Attention({.rows = 9, .mask = {2, 4, 9, 9}}).b.program));
  EXPECT_THAT(device->describe(),
              HasSubstr("kernels (cuDNN is not asked for a mask whose parts do not begin on 16 bytes)"));
}

} // namespace
} // namespace ds::rt
