//===- VerifyLibraryTest.cpp - Operands of library commands --------------------===//
//
// For each function a valid command, then one change at a time: a shape, a dtype, a stride, an overlap, a
// param.
//
//===---------------------------------------------------------------------------===//
#include "OneCommand.h"

#include "ds/Runtime/Program/AttentionParams.h"

#include <cmath>

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using namespace test::one_command;
using testing::HasSubstr;

TEST(VerifyLibrary, Matmul) {
  const OneCommand c(LibraryFn::Matmul, {{{4, 8}, F}, {{8, 6}, F}, {{4, 6}, F}, {{6}, F}}, {0, 0, 0, 0});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_THAT(c.after(shorten(0)), HasSubstr("operand 2 has shape [4x6], expected [3x6]"));
  EXPECT_THAT(c.after(shorten(1)), HasSubstr("inner sizes 8 and 7 differ"));
  EXPECT_THAT(c.after(shorten(3)), HasSubstr("operand 3 has shape [5], expected [6]"));
  EXPECT_THAT(c.after(param(0, 1)), HasSubstr("inner sizes"));
  EXPECT_THAT(c.after(param(2, 2)), HasSubstr("param 2 is 2"));
  EXPECT_THAT(c.after(param(3, -1)), HasSubstr("param 3 is -1"));
  EXPECT_THAT(c.after(retype(0, DType::I32)), HasSubstr("operand 0 has dtype i32, expected f32"));
  EXPECT_THAT(c.after(alias(2, 0)), HasSubstr("shares bytes with operand 0"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[0].strides = {2, 2}; }), HasSubstr("one of them must be 1"));
  EXPECT_THAT(c.after([](Program &p) {
    p.buffers[2].strides = {0, 1};
  }),
              HasSubstr("stride 0 in dimension 0"));
  EXPECT_THAT(c.after([](Program &p) {
    p.buffers[2].strides = {5, 1};
  }),
              HasSubstr("operand 2, of which elements share bytes: shape [4x6], strides [5, 1]"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numOperands = 2; }),
              HasSubstr("has 2 operands, expected 3 to 5"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numParams = 3; }),
              HasSubstr("has 3 params, expected 4"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[0].shape = {8}, p.buffers[0].strides = {1}; }),
              HasSubstr("rank 1, expected at least 2"));
  const OneCommand batch(LibraryFn::Matmul, {{{2, 4, 8}, F}, {{2, 8, 6}, F}, {{2, 4, 6}, F}}, {0, 0, 0, 0});
  EXPECT_EQ(batch.after(), "accepted");
  EXPECT_THAT(batch.after(shorten(1)), HasSubstr("multiplies batches"));
}

/// 16-bit operands of one type, and an f32 result beside them; nothing else is mixed.
TEST(VerifyLibrary, MatmulWithGelu) {
  constexpr DType B = DType::BF16;
  const OneCommand c(LibraryFn::Matmul, {{{4, 8}, B}, {{8, 6}, B}, {{4, 6}, B}, {{6}, B}, {{4, 6}, B}},
                     {0, 0, 0, 2});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after([](Program &p) { p.commands[0].numOperands = 4; }),
            "accepted"); // the input is not wanted
  EXPECT_THAT(c.after(param(3, 4)), HasSubstr("param 3 is 4, allowed are 0 to 3"));
  EXPECT_THAT(c.after(param(2, 1)), HasSubstr("accumulates, which a product with GELU does not"));
  EXPECT_THAT(c.after(param(3, 1)), HasSubstr("operand 4 has rank 2, expected a bias"));
  EXPECT_THAT(c.after(param(3, 3)), HasSubstr("which has GELU's input and no bias"));
  EXPECT_THAT(c.after(shorten(4)), HasSubstr("operand 4 has shape [3x6], expected [4x6]"));
  EXPECT_THAT(c.after(retype(4, DType::F16)), HasSubstr("operand 4 has dtype f16, expected bf16"));
  EXPECT_THAT(c.after(retype(2, F)), HasSubstr("operand 2 has dtype f32, expected bf16"));
  EXPECT_THAT(c.after(alias(2, 4)), HasSubstr("shares bytes with operand 4"));
  EXPECT_THAT(c.after(alias(4, 0)), HasSubstr("writes operand 4, which shares bytes with operand 0"));
  EXPECT_THAT(c.after(alias(4, 3)), HasSubstr("writes operand 4, which shares bytes with operand 3"));
  EXPECT_THAT(c.after([](Program &p) {
    p.buffers[4].strides = {1, 4};
  }),
              HasSubstr("operand 4 is not packed"));
  EXPECT_THAT(c.after([](Program &p) {
    p.buffers[2].strides = {1, 4};
  }),
              HasSubstr("operand 2 is not packed"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[4].shape = {6}, p.buffers[4].strides = {1}; }),
              HasSubstr("two operands of one kind"));
  const OneCommand gradient(LibraryFn::Matmul, {{{4, 8}, B}, {{8, 6}, B}, {{4, 6}, B}, {{4, 6}, B}},
                            {0, 0, 0, 3});
  EXPECT_EQ(gradient.after(), "accepted");
  EXPECT_THAT(gradient.after([](Program &p) { p.commands[0].numOperands = 3; }),
              HasSubstr("which has GELU's input and no bias"));
  EXPECT_THAT(gradient.after(alias(2, 3)), HasSubstr("shares bytes with operand 3"));
  EXPECT_EQ(gradient.after(alias(3, 0)), "accepted"); // it is only read
  const OneCommand single(LibraryFn::Matmul, {{{4, 8}, F}, {{8, 6}, F}, {{4, 6}, F}}, {0, 0, 0, 2});
  EXPECT_THAT(single.after(), HasSubstr("operand 0 has dtype f32, expected bf16"));
}

/// Four params say how the product is made; what the product cannot have is refused where it is bound.
TEST(VerifyLibrary, MatmulForms) {
  const OneCommand c(LibraryFn::Matmul, {{{4, 8}, F}, {{8, 6}, F}, {{4, 6}, F}}, {0, 0, 0, 0, 0, 0, 64, 2});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after(param(4, 4)), "accepted"); // the last form
  EXPECT_THAT(c.after(param(4, 5)), HasSubstr("param 4 is 5, allowed are 0 to 4"));
  EXPECT_THAT(c.after(param(7, -2)), HasSubstr("is made in parts of -2"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numParams = 7; }),
              HasSubstr("has 7 params, expected 4"));
}

/// With GELU's gradient the last operand may have sums of the result.
TEST(VerifyLibrary, MatmulWithSumsOfItsResult) {
  constexpr DType B = DType::BF16;
  const OneCommand c(LibraryFn::Matmul, {{{4, 8}, B}, {{8, 6}, B}, {{4, 6}, B}, {{4, 6}, B}, {{6}, B}},
                     {0, 0, 0, 3, 3});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after(retype(4, F)), "accepted");
  EXPECT_THAT(c.after(param(3, 2)), HasSubstr("which only a product with GELU's gradient has"));
  EXPECT_THAT(c.after(param(4, 2)), HasSubstr("which a product with sums of a factor does not"));
  EXPECT_THAT(c.after(retype(3, F)), HasSubstr("operand 3 has dtype f32, expected bf16"));
  EXPECT_THAT(c.after(shorten(4)), HasSubstr("operand 4 has shape [5], expected [6]"));
  EXPECT_THAT(c.after(alias(4, 2)), HasSubstr("writes operand 4, which shares bytes with operand 2"));
  EXPECT_THAT(c.after(alias(4, 3)), HasSubstr("writes operand 4, which shares bytes with operand 3"));
  const OneCommand lacking(LibraryFn::Matmul, {{{4, 8}, B}, {{8, 6}, B}, {{4, 6}, B}, {{6}, B}},
                           {0, 0, 0, 3, 3});
  EXPECT_THAT(lacking.after(), HasSubstr("which has GELU's input and no bias"));
  const OneCommand folded(LibraryFn::Matmul,
                          {{{2, 2, 8}, B}, {{8, 6}, B}, {{2, 2, 6}, B}, {{2, 2, 6}, B}, {{6}, B}},
                          {0, 0, 0, 3, 3});
  EXPECT_EQ(folded.after(), "accepted");
  const OneCommand batch(LibraryFn::Matmul,
                         {{{2, 4, 8}, B}, {{2, 8, 6}, B}, {{2, 4, 6}, B}, {{2, 4, 6}, B}, {{6}, B}},
                         {0, 0, 0, 3, 3});
  EXPECT_THAT(batch.after(), HasSubstr("operand 1 has rank 3, expected 2"));
}

/// A fifth param says of which factor the last operand has sums.
TEST(VerifyLibrary, MatmulWithSums) {
  constexpr DType B = DType::BF16;
  const OneCommand c(LibraryFn::Matmul, {{{8, 4}, B}, {{8, 6}, B}, {{4, 6}, B}, {{6}, B}}, {1, 0, 0, 0, 2});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after(param(2, 1)), "accepted"); // what is added to the result is not to sums
  EXPECT_EQ(c.after(retype(3, F)), "accepted");
  EXPECT_THAT(c.after(param(4, 1)), HasSubstr("operand 3 has shape [6], expected [4]"));
  EXPECT_THAT(c.after(param(4, 3)), HasSubstr("which only a product with GELU's gradient has"));
  EXPECT_THAT(c.after(param(4, 4)), HasSubstr("param 4 is 4, allowed are 0 to 3"));
  EXPECT_THAT(c.after(param(3, 1)), HasSubstr("which a product with sums of a factor does not"));
  EXPECT_THAT(c.after(shorten(3)), HasSubstr("operand 3 has shape [5], expected [6]"));
  EXPECT_THAT(c.after(retype(3, DType::F16)), HasSubstr("operand 3 has dtype f16, expected bf16"));
  EXPECT_THAT(c.after(alias(3, 1)), HasSubstr("writes operand 3, which shares bytes with operand 1"));
  EXPECT_THAT(c.after(alias(3, 2)), HasSubstr("writes operand 3, which shares bytes with operand 2"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numOperands = 3; }),
              HasSubstr("has 3 operands, expected 4 to 5"));
  const OneCommand batch(LibraryFn::Matmul, {{{2, 8, 4}, B}, {{2, 8, 6}, B}, {{2, 4, 6}, B}, {{6}, B}},
                         {1, 0, 0, 0, 2});
  EXPECT_THAT(batch.after(), HasSubstr("operand 0 has rank 3, expected 2"));
}

TEST(VerifyLibrary, MatmulTypes) {
  for (DType low : {DType::BF16, DType::F16}) {
    const OneCommand c(LibraryFn::Matmul, {{{4, 8}, low}, {{8, 6}, low}, {{4, 6}, low}, {{6}, low}},
                       {0, 0, 0, 0});
    EXPECT_EQ(c.after(), "accepted");
    EXPECT_THAT(c.after(retype(1, F)), HasSubstr("operand 1 has dtype f32, expected"));
    EXPECT_THAT(c.after(retype(3, F)), HasSubstr("operand 3 has dtype f32, expected"));
    EXPECT_THAT(c.after(retype(2, low == DType::F16 ? DType::BF16 : DType::F16)), HasSubstr("operand 2"));
  }
  const OneCommand sums(LibraryFn::Matmul, {{{4, 8}, DType::F16}, {{8, 6}, DType::F16}, {{4, 6}, F}},
                        {0, 0, 0, 0});
  EXPECT_EQ(sums.after(), "accepted");
  const OneCommand wide(LibraryFn::Matmul, {{{4, 8}, F}, {{8, 6}, F}, {{4, 6}, DType::F16}}, {0, 0, 0, 0});
  EXPECT_THAT(wide.after(), HasSubstr("operand 2 has dtype f16, expected f32"));
}

TEST(VerifyLibrary, Convolutions) {
  // (9 + 2 * 1 - 2 * (3 - 1) - 1) / 2 + 1 = 4, (8 - 2) / 1 + 1 = 7
  const std::vector<int64_t> x = {2, 4, 9, 8}, w = {6, 2, 3, 2}, y = {2, 6, 4, 7},
                             params = {2, 2, 1, 2, 1, 0, 1};
  const OneCommand c(LibraryFn::ConvForward, {{x, F}, {w, F}, {y, F}, {{6}, F}}, params);
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(OneCommand(LibraryFn::ConvBackwardInput, {{w, F}, {y, F}, {x, F}}, params).after(), "accepted");
  EXPECT_EQ(OneCommand(LibraryFn::ConvBackwardWeight, {{x, DType::BF16}, {y, DType::BF16}, {w, DType::BF16}},
                       params)
                .after(),
            "accepted");
  EXPECT_THAT(OneCommand(LibraryFn::ConvBackwardInput, {{w, F}, {y, F}, {x, F}, {{6}, F}}, params).after(),
              HasSubstr("has 4 operands, expected 3 to 3"));
  EXPECT_THAT(OneCommand(LibraryFn::ConvForward, {{x, F}, {w, F}}, params).after(),
              HasSubstr("has 2 operands, expected 3"));
  EXPECT_THAT(OneCommand(LibraryFn::ConvForward, {{x, F}, {w, F}, {y, F}}, {2, 2, 1, 2}).after(),
              HasSubstr("has 4 params, expected 7"));
  EXPECT_THAT(OneCommand(LibraryFn::ConvForward, {{{2, 4}, F}, {{6, 2}, F}, {{2, 6}, F}}, {2}).after(),
              HasSubstr("operand 0 has rank 2, expected 3 to 5"));
  EXPECT_THAT(OneCommand(LibraryFn::ConvForward, {{x, F}, {{6, 2, 3}, F}, {y, F}}, params).after(),
              HasSubstr("operand 1 has rank 3, expected 4"));
  EXPECT_THAT(c.after(retype(1, DType::BF16)), HasSubstr("operand 1 has dtype bf16, expected f32"));
  EXPECT_THAT(c.after(param(0, 3)), HasSubstr("has input [2x4x9x8] and weight [6x2x3x2] in 3 groups"));
  EXPECT_THAT(c.after(param(0, 0)), HasSubstr("in 0 groups"));
  EXPECT_THAT(c.after(param(1, 0)), HasSubstr("has windows that do not fit"));
  EXPECT_THAT(c.after(param(2, -1)), HasSubstr("has windows that do not fit"));
  EXPECT_THAT(c.after(param(3, int64_t(1) << 62)), HasSubstr("has windows that do not fit"));
  EXPECT_THAT(c.after(param(6, 20)), HasSubstr("has windows that do not fit"));
  EXPECT_THAT(c.after(param(1, 1)), HasSubstr("operand 2 has shape [2x6x4x7], expected [2x6x7x7]"));
  EXPECT_THAT(c.after(shorten(3)), HasSubstr("operand 3 has shape [5], expected [6]"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[0].strides[3] = 2; }), HasSubstr("operand 0 is not packed"));
  EXPECT_THAT(c.after(alias(2, 0)), HasSubstr("writes operand 2, which shares bytes with operand 0"));
}

TEST(VerifyLibrary, Embedding) {
  const OneCommand forward(LibraryFn::EmbeddingForward, {{{10, 6}, F}, {{2, 3}, I}, {{2, 3, 6}, F}}, {});
  EXPECT_EQ(forward.after(), "accepted");
  EXPECT_THAT(forward.after(shorten(1)), HasSubstr("operand 2 has shape [2x3x6], expected [1x3x6]"));
  EXPECT_THAT(forward.after(retype(1, F)), HasSubstr("operand 1 has dtype f32, expected i64"));
  EXPECT_THAT(forward.after([](Program &p) { p.buffers[2].strides[0] = 24; }), HasSubstr("not packed"));
  EXPECT_THAT(forward.after(alias(2, 0)), HasSubstr("shares bytes"));
  const OneCommand backward(LibraryFn::EmbeddingBackward, {{{2, 3}, I}, {{2, 3, 6}, F}, {{10, 6}, F}}, {0});
  EXPECT_EQ(backward.after(), "accepted");
  EXPECT_THAT(backward.after(shorten(0)), HasSubstr("operand 1 has shape"));
  EXPECT_THAT(backward.after(alias(2, 1)), HasSubstr("shares bytes"));
  EXPECT_THAT(backward.after(param(0, 7)), HasSubstr("param 0 is 7"));
}

/// Sums of 16-bit gradients are f32, in workspace: less of it would let the kernel write over other buffers.
TEST(VerifyLibrary, WorkspaceOfNarrowGradients) {
  constexpr DType L = DType::BF16;
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, L}, k{{2, 8, 2, 16}, L};
  const OneCommand attention(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k},
                             {1, bits(0.25)});
  // 2 tensors * 2 threads * 8 keys * 16 * 4 bytes.
  EXPECT_THAT(attention.after(), HasSubstr("needs 2048 bytes of workspace, but 0 are planned"));
  EXPECT_THAT(attention.after(workspace(2047)), HasSubstr("needs 2048 bytes of workspace, but 2047"));
  EXPECT_EQ(attention.after(workspace(2048)), "accepted");
  EXPECT_THAT(attention.after(retype(6, F)), HasSubstr("operand 6 has dtype f32, expected bf16"));
  const OneCommand rows(LibraryFn::EmbeddingBackward, {{{2, 3}, I}, {{2, 3, 6}, L}, {{10, 6}, L}}, {0});
  EXPECT_THAT(rows.after(), HasSubstr("needs 48 bytes of workspace")); // 6 ids, twice 4 bytes
  EXPECT_EQ(rows.after(workspace(48)), "accepted");
  EXPECT_THAT(rows.after([](Program &p) {
    workspace(48)(p);
    p.buffers.back().offset = p.buffers[p.operands[0]].offset; // the ids
  }),
              HasSubstr("has a workspace that shares bytes with operand 0"));
  const OneCommand wide(LibraryFn::EmbeddingBackward, {{{2, 3}, I}, {{2, 3, 6}, L}, {{10, 6}, F}}, {0});
  EXPECT_EQ(wide.after(), "accepted") << "sums of f32 need none";
  // On CUDA ids are sorted for sums of f32 too: 3 * 6 numbers and 2 * 16 counts of 4 bytes.
  EXPECT_THAT(wide.after([](Program &p) { p.target = "cuda:sm_90"; }),
              HasSubstr("needs 200 bytes of workspace, but 0 are planned"));
  EXPECT_THAT(rows.after(retype(1, F)), HasSubstr("operand 2 has dtype bf16, expected f32"));
  const OneCommand lookup(LibraryFn::EmbeddingForward, {{{10, 6}, L}, {{2, 3}, I}, {{2, 3, 6}, F}}, {});
  EXPECT_THAT(lookup.after(), HasSubstr("operand 0 has dtype bf16, expected f32"));
}

TEST(VerifyLibrary, WorkspaceLiesWhereLibrariesOfCudaWantIt) {
  const OneCommand product(LibraryFn::Matmul, {{{4, 8}, F}, {{8, 6}, F}, {{4, 6}, F}}, {0, 0, 0, 0});
  auto onCuda = [](Program &p) {
    workspace(64)(p); // behind 128 + 192 + 128 bytes
    p.target = "cuda:sm_90";
  };
  EXPECT_EQ(product.after(workspace(64)), "accepted");
  EXPECT_THAT(product.after(onCuda), HasSubstr("workspace at offset 448, but CUDA's libraries rely on "
                                               "multiples of 256"));
}

TEST(VerifyLibrary, SumOfSquares) {
  const OneCommand c(LibraryFn::SumOfSquares,
                     {{{200, 200}, DType::BF16}, {{16384}, F}, {{4, 0}, F}, {{}, DType::F64}}, {});
  const auto with = [&](const std::function<void(Program &)> &change) {
    return c.after([&](Program &p) {
      workspace(16)(p);
      change(p);
    });
  };
  // 3 blocks of the first, 1 of the second: 4 sums of 4 bytes, on either target.
  EXPECT_EQ(c.after(workspace(16)), "accepted");
  EXPECT_THAT(c.after(workspace(15)), HasSubstr("needs 16 bytes of workspace, but 15 are planned"));
  EXPECT_THAT(with([](Program &p) { p.commands[0].workspace = UINT32_MAX, p.target = "cuda:sm_90"; }),
              HasSubstr("needs 16 bytes of workspace, but 0 are planned"));
  EXPECT_THAT(with([](Program &p) { p.buffers.back().offset += 2; }),
              HasSubstr("has its workspace at offset"));
  EXPECT_THAT(with(retype(0, DType::U8)), HasSubstr("operand 0 has dtype u8, expected f32"));
  EXPECT_THAT(with(retype(1, DType::I32)), HasSubstr("operand 1 has dtype i32, expected f32"));
  EXPECT_THAT(with(retype(3, F)), HasSubstr("operand 3 has dtype f32, expected f64"));
  EXPECT_THAT(with([](Program &p) { p.buffers[0].shape[1] = 100; }), HasSubstr("operand 0 is not packed"));
  EXPECT_THAT(with(alias(3, 1)), HasSubstr("writes operand 3, which shares bytes with operand 1"));
  EXPECT_THAT(with([](Program &p) { p.commands[0].numOperands = 3; }),
              HasSubstr("operand 2 has dtype f32, expected f64"));
  EXPECT_THAT(with([](Program &p) { p.commands[0].numOperands = 1; }), HasSubstr("has 1 operands"));
  EXPECT_THAT(with([](Program &p) { p.commands[0].numParams = 1, p.params = {2}; }), HasSubstr("param 0"));
  EXPECT_THAT(with([](Program &p) { p.commands[0].numParams = 1, p.params = {1}; }),
              HasSubstr("operand 0 has dtype bf16, expected f32"));
  EXPECT_THAT(OneCommand(LibraryFn::SumOfSquares, {{{8}, F}, {{1}, DType::F64}}, {}).after(workspace(4)),
              HasSubstr("operand 1 has shape [1], expected []"));
  // Sums of blocks: without a workspace, and added up by the host alone.
  const OneCommand blocks(LibraryFn::SumOfSquares, {{{200, 200}, DType::BF16}, {{3}, F}}, {});
  EXPECT_EQ(blocks.after(), "accepted");
  EXPECT_THAT(blocks.after([](Program &p) { p.buffers[1].shape[0] = 2; }),
              HasSubstr("operand 1 has shape [2], expected [3]"));
  EXPECT_THAT(blocks.after(alias(1, 0)), HasSubstr("writes operand 1, which shares bytes with operand 0"));
  const OneCommand total(LibraryFn::SumOfSquares, {{{3}, F}, {{1}, F}, {{}, DType::F64}}, {1});
  EXPECT_EQ(total.after(workspace(8)), "accepted");
  EXPECT_THAT(total.after([](Program &p) { p.target = "cuda:sm_90"; }),
              HasSubstr("sums up blocks' sums, which only the host does"));
}

TEST(VerifyLibrary, FillAndCopy) {
  const OneCommand fill(LibraryFn::Fill, {{{4, 4}, F}}, {bits(1)});
  EXPECT_EQ(fill.after(), "accepted");
  EXPECT_THAT(fill.after([](Program &p) { p.buffers[0].strides[0] = 0; }), HasSubstr("stride 0"));
  const OneCommand copy(LibraryFn::Copy, {{{4, 4}, F}, {{4, 4}, F}}, {});
  EXPECT_EQ(copy.after(), "accepted");
  EXPECT_THAT(copy.after(shorten(1)), HasSubstr("operand 1 has shape [3x4], expected [4x4]"));
  EXPECT_THAT(copy.after(retype(1, DType::I32)), HasSubstr("dtype i32, expected f32"));
  EXPECT_THAT(copy.after(alias(1, 0)), HasSubstr("shares bytes"));
}

} // namespace
} // namespace ds::rt
