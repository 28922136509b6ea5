//===- VerifyLossTest.cpp - Operands of the commands for cross-entropy -----------===//
#include "OneCommand.h"

namespace ds::rt {
namespace {

using test::bits;
using namespace test::one_command;
using testing::HasSubstr;

TEST(VerifyLibrary, CrossEntropy) {
  const OneCommand forward(LibraryFn::CrossEntropyForward,
                           {{{4, 9}, F}, {{4}, I}, {{}, F}, {{4}, F}, {{}, F}}, {-100});
  EXPECT_EQ(forward.after(), "accepted");
  EXPECT_THAT(forward.after(shorten(0)), HasSubstr("operand 1 has shape [4], expected [3]"));
  EXPECT_THAT(forward.after(shorten(3)), HasSubstr("operand 3 has shape [3], expected [4]"));
  EXPECT_THAT(forward.after(retype(4, I)), HasSubstr("operand 4 has dtype i64"));
  EXPECT_THAT(forward.after(alias(4, 2)), HasSubstr("shares bytes"));
  const OneCommand part(LibraryFn::CrossEntropyForward,
                        {{{4, 9}, F}, {{4}, I}, {{}, F}, {{4}, F}, {{}, F}, {{}, F}}, {-100});
  EXPECT_EQ(part.after(), "accepted");
  EXPECT_THAT(part.after(retype(5, I)), HasSubstr("operand 5 has dtype i64"));
  EXPECT_THAT(part.after(alias(2, 5)), HasSubstr("writes operand 2, which shares bytes with operand 5"));
  EXPECT_THAT(part.after(alias(4, 5)), HasSubstr("writes operand 4, which shares bytes with operand 5"));
  const OneCommand backward(LibraryFn::CrossEntropyBackward,
                            {{{4, 9}, F}, {{4}, I}, {{4}, F}, {{}, F}, {{}, F}, {{4, 9}, F}}, {-100});
  EXPECT_EQ(backward.after(), "accepted");
  EXPECT_EQ(backward.after(alias(5, 0)), "accepted") << "in place";
  EXPECT_THAT(backward.after([](Program &p) { p.buffers[5].offset = p.buffers[0].offset + 4; }),
              HasSubstr("writes operand 5, which shares bytes with operand 0"));
  EXPECT_THAT(backward.after(alias(5, 2)), HasSubstr("shares bytes"));
  EXPECT_THAT(backward.after(shorten(5)), HasSubstr("operand 5 has shape"));
  EXPECT_THAT(backward.after(retype(5, DType::BF16)), HasSubstr("operand 5 has dtype bf16, expected f32"));
}

TEST(VerifyLibrary, CrossEntropyWithGradient) {
  const OneCommand both(LibraryFn::CrossEntropyWithGradient,
                        {{{4, 9}, F}, {{4}, I}, {{}, F}, {{}, F}, {{}, F}, {{4, 9}, F}, {{}, F}}, {-100});
  const auto after = [&](const std::function<void(Program &)> &change) {
    return both.after([&](Program &p) { workspace(16)(p), change(p); });
  };
  EXPECT_EQ(both.after(workspace(16)), "accepted");
  EXPECT_EQ(after(alias(5, 0)), "accepted") << "in place";
  EXPECT_EQ(after([](Program &p) { --p.commands[0].numOperands; }), "accepted") << "without a denominator";
  EXPECT_THAT(both.after(), HasSubstr("needs 16 bytes of workspace, but 0 are planned"));
  EXPECT_THAT(both.after(workspace(12)), HasSubstr("needs 16 bytes of workspace, but 12 are planned"));
  EXPECT_THAT(after(shorten(1)), HasSubstr("operand 1 has shape [3], expected [4]"));
  EXPECT_THAT(after(retype(2, I)), HasSubstr("operand 2 has dtype i64"));
  EXPECT_THAT(after(retype(6, I)), HasSubstr("operand 6 has dtype i64"));
  EXPECT_THAT(after(retype(5, DType::BF16)), HasSubstr("operand 5 has dtype bf16, expected f32"));
  EXPECT_THAT(after(shorten(5)), HasSubstr("operand 5 has shape"));
  for (auto [written, other] : {std::pair(3, 2), {3, 6}, {4, 2}, {4, 3}, {4, 6}, {5, 1}, {5, 2}, {5, 6}})
    EXPECT_THAT(after(alias(written, other)), HasSubstr("shares bytes with operand")) << written << other;
  EXPECT_THAT(after([](Program &p) { p.buffers[5].offset = p.buffers[0].offset + 4; }),
              HasSubstr("writes operand 5, which shares bytes with operand 0"));
  EXPECT_THAT(after([](Program &p) { p.buffers.back().offset = p.buffers[0].offset; }),
              HasSubstr("has a workspace that shares bytes with operand 0"));
  const OneCommand capped(LibraryFn::CrossEntropyWithGradient,
                          {{{4, 9}, F}, {{4}, I}, {{}, F}, {{}, F}, {{}, F}, {{4, 9}, F}}, {-100, bits(-2)});
  EXPECT_THAT(capped.after(workspace(16)), HasSubstr("has a cap of -2, expected 0 or a positive f32"));
}

/// Leaves 9 elements of each row of operand `k`, which is of rank 2, and puts rows `pitch` elements apart.
auto layApart(uint32_t k, int64_t pitch) {
  return [=](Program &p) { p.buffers[k].shape[1] = 9, p.buffers[k].strides[0] = pitch; };
}

/// Rows of logits may lie apart, in place too, but not over one another nor beyond what is theirs.
TEST(VerifyLibrary, CrossEntropyOfRowsApart) {
  const OneCommand both(LibraryFn::CrossEntropyWithGradient,
                        {{{4, 12}, F}, {{4}, I}, {{}, F}, {{}, F}, {{}, F}, {{4, 12}, F}}, {-100});
  const auto after = [&](std::initializer_list<std::function<void(Program &)>> changes) {
    return both.after([&](Program &p) {
      workspace(16)(p);
      for (const auto &change : changes)
        change(p);
    });
  };
  EXPECT_EQ(after({layApart(0, 12), layApart(5, 12)}), "accepted");
  EXPECT_EQ(after({layApart(0, 12), layApart(5, 9)}), "accepted");
  EXPECT_EQ(after({layApart(0, 12), layApart(5, 12), alias(5, 0)}), "accepted") << "in place";
  EXPECT_THAT(after({layApart(0, 12), layApart(5, 9), alias(5, 0)}),
              HasSubstr("shares bytes with operand 0"));
  EXPECT_THAT(after({layApart(0, 12), layApart(5, 8)}),
              HasSubstr("writes operand 5, of which elements share bytes: shape [4x9], strides [8, 1]"));
  // 3 * 14 + 9 elements are more than the 48 that are there.
  EXPECT_THAT(after({layApart(0, 14), layApart(5, 12)}), HasSubstr("lifetime"));
}

TEST(VerifyLibrary, CrossEntropyWithACap) {
  const OneCommand forward(LibraryFn::CrossEntropyForward,
                           {{{4, 9}, F}, {{4}, I}, {{}, F}, {{4}, F}, {{}, F}}, {-100, bits(30)});
  const OneCommand backward(LibraryFn::CrossEntropyBackward,
                            {{{4, 9}, F}, {{4}, I}, {{4}, F}, {{}, F}, {{}, F}, {{4, 9}, F}},
                            {-100, bits(30)});
  for (const OneCommand *c : {&forward, &backward}) {
    EXPECT_EQ(c->after(), "accepted");
    EXPECT_THAT(c->after(param(1, bits(-2))), HasSubstr("has a cap of -2, expected 0 or a positive f32"));
    EXPECT_THAT(c->after([](Program &p) { p.commands[0].numParams = 0; }),
                HasSubstr("has 0 params, expected 1"));
  }
}

} // namespace
} // namespace ds::rt
