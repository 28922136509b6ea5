//===- VerifyAttentionTest.cpp - Operands of attention and its gradient ------------===//
//
// As VerifyLibraryTest.cpp has those of other functions.
//
//===-------------------------------------------------------------------------------===//
#include "OneCommand.h"

#include "ds/Runtime/Program/AttentionParams.h"

#include <cmath>

namespace ds::rt {
namespace {

using test::bits;
using test::ProgramBuilder;
using namespace test::one_command;
using testing::HasSubstr;

TEST(VerifyAttention, AttentionForward) {
  const OneCommand c(LibraryFn::AttentionForward,
                     {{{2, 8, 4, 16}, F},
                      {{2, 9, 2, 16}, F},
                      {{2, 9, 2, 16}, F},
                      {{2, 8, 4, 16}, F},
                      {{2, 4, 8}, F},
                      {{1, 4, 1, 9}, F}},
                     {1, bits(0.25)});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_THAT(c.after(shorten(1)), HasSubstr("batch and head size must agree"));
  EXPECT_THAT(c.after(shorten(2)), HasSubstr("operand 2 has shape [1x9x2x16], expected [2x9x2x16]"));
  EXPECT_THAT(c.after(shorten(3)), HasSubstr("operand 3 has shape"));
  EXPECT_THAT(c.after(shorten(4)), HasSubstr("operand 4 has shape [1x4x8], expected [2x4x8]"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[5].shape[1] = 3; }), HasSubstr("has mask [1x3x1x9]"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[0].shape[2] = 3; }),
              HasSubstr("3 query heads, not a multiple of 2"));
  EXPECT_THAT(c.after([](Program &p) { p.buffers[0].strides[3] = 2, p.buffers[0].shape[3] = 8; }),
              HasSubstr("operand 0 has innermost stride 2"));
  EXPECT_THAT(c.after(param(0, 2)), HasSubstr("param 0 is 2"));
  EXPECT_THAT(c.after(param(1, bits(INFINITY))), HasSubstr("scale that is not finite"));
  EXPECT_THAT(c.after(alias(3, 0)), HasSubstr("writes operand 3, which shares bytes with operand 0"));
  const OneCommand wide(
      LibraryFn::AttentionForward,
      {{{1, 2, 1, 257}, F}, {{1, 2, 1, 257}, F}, {{1, 2, 1, 257}, F}, {{1, 2, 1, 257}, F}, {{1, 1, 2}, F}},
      {1, bits(0.25)});
  EXPECT_THAT(wide.after(), HasSubstr("head size at most 256"));
}

TEST(VerifyAttention, AttentionWithWindowCapAndSlopes) {
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, F}, k{{2, 9, 2, 16}, F};
  const OneCommand c(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, {{1, 4, 1, 9}, F}, {{4}, F}},
                     {1, bits(0.25), 5, bits(30)});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after(param(2, 0)), "accepted") << "a cap alone";
  EXPECT_EQ(c.after(param(3, 0)), "accepted") << "a window alone";
  EXPECT_THAT(c.after(param(2, -1)), HasSubstr("has a window of -1 positions"));
  EXPECT_THAT(c.after(param(3, bits(-1))), HasSubstr("has a cap of -1, expected 0 or a positive f32"));
  EXPECT_THAT(c.after(param(3, bits(NAN))), HasSubstr("has a cap of nan"));
  EXPECT_THAT(c.after(param(3, bits(1e300))), HasSubstr("has a cap of 1e+300"));
  EXPECT_THAT(c.after(param(3, bits(1e-300))), HasSubstr("has a cap of 1e-300"));
  EXPECT_THAT(c.after(shorten(6)), HasSubstr("has 3 slopes for 4 heads"));
  EXPECT_THAT(c.after(retype(6, DType::BF16)), HasSubstr("operand 6 has dtype bf16, expected f32"));
  EXPECT_THAT(c.after(alias(6, 3)), HasSubstr("writes operand 3, which shares bytes with operand 6"));
  EXPECT_THAT(c.after(alias(6, 4)), HasSubstr("writes operand 4, which shares bytes with operand 6"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numParams = 3; }),
              HasSubstr("has 3 params, expected 2"));
  const OneCommand twice(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, {{4}, F}, {{4}, F}},
                         {1, bits(0.25)});
  EXPECT_THAT(twice.after(), HasSubstr("two operands of one kind"));
  const OneCommand backward(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k, {{4}, F}},
                            {1, bits(0.25), 5, bits(30)});
  EXPECT_EQ(backward.after(), "accepted");
  EXPECT_THAT(backward.after(shorten(9)), HasSubstr("has 3 slopes for 4 heads"));
  for (uint32_t result : {6, 7, 8})
    EXPECT_THAT(backward.after(alias(9, result)), HasSubstr("shares bytes with operand 9"));
}

TEST(VerifyAttention, AttentionWithDropout) {
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, F}, k{{2, 9, 2, 16}, F}, rng{{2}, I};
  const OneCommand c(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, {{4}, F}, rng},
                     {1, bits(0.25), 0, 0, bits(0.1), 7, 4});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_EQ(c.after(param(4, 0)), "accepted") << "nothing is dropped";
  EXPECT_THAT(c.after(param(4, bits(1))), HasSubstr("has a dropout of 1, expected at least 0 and below 1"));
  EXPECT_THAT(c.after(param(4, bits(NAN))), HasSubstr("has a dropout of nan"));
  EXPECT_THAT(c.after(param(5, -1)), HasSubstr("draws its dropout by the number -1"));
  EXPECT_THAT(c.after(shorten(6)), HasSubstr("has a generator of 1 numbers, expected 2"));
  EXPECT_THAT(c.after(retype(6, F)), HasSubstr("has two operands of one kind"));
  EXPECT_THAT(c.after(retype(5, I)), HasSubstr("has two operands of one kind"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numParams = 4; }),
              HasSubstr("has a generator without dropout"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numOperands = 6; }),
              HasSubstr("has dropout without a generator"));
  EXPECT_THAT(c.after(alias(6, 3)), HasSubstr("writes operand 3, which shares bytes with operand 6"));
  EXPECT_THAT(c.after(param(6, 5)), HasSubstr("draws the dropout of 5 heads, of which it has 4"));
  EXPECT_THAT(c.after(param(6, 0)), HasSubstr("draws the dropout of 0 heads"));
  const OneCommand some(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, rng, {{}, I}},
                        {1, bits(0.25), 0, 0, bits(0.1), 7, 8});
  EXPECT_EQ(some.after(), "accepted") << "four heads of eight";
  EXPECT_THAT(some.after(param(6, 3)), HasSubstr("draws the dropout of 3 heads, of which it has 4"));
  EXPECT_THAT(some.after(retype(6, F)), HasSubstr("operand 6 has dtype f32, expected i64"));
  EXPECT_THAT(some.after(alias(6, 3)), HasSubstr("writes operand 3, which shares bytes with operand 6"));
  const OneCommand undrawn(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, {{}, I}},
                           {1, bits(0.25)});
  EXPECT_THAT(undrawn.after(), HasSubstr("has a first head without dropout"));
  const OneCommand backward(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k, rng},
                            {1, bits(0.25), 0, 0, bits(0.1), 7, 4});
  EXPECT_EQ(backward.after(), "accepted");
  for (uint32_t result : {6, 7, 8})
    EXPECT_THAT(backward.after(alias(9, result)), HasSubstr("shares bytes with operand 9"));
}

/// A block of 0 is none: the gradient may be added up in any order.
TEST(VerifyAttention, FastAttention) {
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, F}, k{{2, 8, 2, 16}, F};
  const OneCommand c(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k},
                     {1, bits(0.25), kFastGradient});
  EXPECT_EQ(c.after(), "accepted");
  EXPECT_THAT(c.after(param(2, -8)), HasSubstr("has blocks of -8 rows"));
  EXPECT_THAT(c.after(param(2, 12)), HasSubstr("has blocks of 12 rows"));
}

/// Of every gradient, and of dropout forward.
TEST(VerifyAttention, BlocksOfAttention) {
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, F}, k{{2, 8, 2, 16}, F}, rng{{2}, I};
  const OneCommand windowed(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k},
                            {1, bits(0.25), 4, bits(2), 8});
  EXPECT_EQ(windowed.after(), "accepted");
  const OneCommand dropping(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}, rng},
                            {1, bits(0.25), 0, 0, bits(0.1), 7, 4, 8});
  EXPECT_EQ(dropping.after(), "accepted");
  EXPECT_THAT(dropping.after(param(7, 0)), HasSubstr("has blocks of 0 rows"));
  const OneCommand capped(LibraryFn::AttentionForward, {q, k, k, q, {{2, 4, 8}, F}},
                          {1, bits(0.25), 4, bits(2), 8});
  EXPECT_THAT(capped.after(), HasSubstr("5 params"));
}

TEST(VerifyAttention, AttentionBackward) {
  const std::pair<std::vector<int64_t>, DType> q{{2, 8, 4, 16}, F}, k{{2, 8, 2, 16}, F};
  const OneCommand c(LibraryFn::AttentionBackward, {q, k, k, q, {{2, 4, 8}, F}, q, q, k, k}, {1, bits(0.25)});
  EXPECT_EQ(c.after(), "accepted");
  for (uint32_t operand : {5, 6, 7, 8})
    EXPECT_THAT(c.after(shorten(operand)), HasSubstr("operand " + std::to_string(operand) + " has shape"));
  EXPECT_THAT(c.after(alias(6, 0)), HasSubstr("writes operand 6, which shares bytes with operand 0"));
  EXPECT_THAT(c.after(alias(8, 7)), HasSubstr("writes operand 7, which shares bytes with operand 8"));
  EXPECT_THAT(c.after([](Program &p) { p.commands[0].numOperands = 8; }), HasSubstr("expected 9 to 13"));
}

} // namespace
} // namespace ds::rt
