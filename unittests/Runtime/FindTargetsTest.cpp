//===- FindTargetsTest.cpp - Which elements of an input are the loss's targets ------===//
#include "Training/FindTargets.h"
#include "ProgramBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using test::ProgramBuilder;
using testing::ElementsAre;

/// Programs whose cross-entropies read labels [2, 4] in some way.
class FindTargetsTest : public testing::Test {
protected:
  FindTargetsTest() : x(b.input("x", {8, 3})), y(b.input("y", {2, 4}, DType::I64, 3)) {}

  /// A loss of `targets`, at the next command.
  void lossOf(uint32_t targets, int64_t ignored = -100) {
    const int64_t rows = b.program.buffers[targets].shape[0];
    b.library(LibraryFn::CrossEntropyForward,
              {b.view(x, 0, {rows, 3}, {3, 1}), targets, b.keep({}), b.keep({rows}), b.keep({})}, {ignored});
  }
  /// A packed copy of `elements`, live from the next command on.
  uint32_t copyOf(uint32_t elements) {
    const uint32_t copy = b.place(b.program.buffers[elements].shape, DType::I64);
    const auto begin = static_cast<uint32_t>(b.program.commands.size());
    b.live(copy, 0, begin, begin + 10);
    b.library(LibraryFn::Copy, {elements, copy});
    return copy;
  }
  std::optional<FoundTargets> find() {
    b.segment();
    return findTargets(b.program);
  }

  ProgramBuilder b;
  const uint32_t x, y;
};

TEST_F(FindTargetsTest, AllOfAnInput) {
  lossOf(b.view(y, 0, {8}, {1}), 2);
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->input, 1u);
  EXPECT_EQ(found->ignored, 2);
  EXPECT_THAT(found->ofSample, ElementsAre(1, 1, 1, 1));
}

/// Forward shifts the labels, and its loss is made in two chunks of 4 and 2 rows.
TEST_F(FindTargetsTest, ACopyOfAPartInChunks) {
  const uint32_t copy = copyOf(b.view(y, 1, {2, 3}, {4, 1}));
  lossOf(b.view(copy, 0, {4}, {1}));
  lossOf(b.view(copy, 4, {2}, {1}));
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->input, 1u);
  EXPECT_THAT(found->ofSample, ElementsAre(0, 1, 1, 1));
}

TEST_F(FindTargetsTest, ACopyOfACopy) {
  lossOf(b.view(copyOf(copyOf(b.view(y, 0, {2, 2}, {4, 2}))), 0, {4}, {1}));
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ofSample, ElementsAre(1, 0, 1, 0));
}

TEST_F(FindTargetsTest, WhatTheProgramComputesIsNotKnown) {
  const uint32_t made = b.place({8}, DType::I64);
  b.live(made, 0, 0, 2);
  b.launch("ds_make", 8, {y, made});
  lossOf(made);
  EXPECT_FALSE(find());
}

TEST_F(FindTargetsTest, PartsOfSamplesThatDifferAreNotKnown) {
  lossOf(b.view(y, 0, {6}, {1})); // both halves of the first sample, one of the second
  EXPECT_FALSE(find());
}

TEST_F(FindTargetsTest, SeveralInputsAndValuesAreNotKnown) {
  lossOf(b.view(b.input("z", {2, 4}, DType::I64, 3), 0, {8}, {1}));
  lossOf(b.view(y, 0, {8}, {1}));
  EXPECT_FALSE(find());
}

TEST_F(FindTargetsTest, LossesThatIgnoreDifferentValuesAreNotKnown) {
  lossOf(b.view(y, 0, {8}, {1}), -100);
  lossOf(b.view(y, 0, {8}, {1}), 0);
  EXPECT_FALSE(find());
}

TEST_F(FindTargetsTest, OfALossWithItsGradient) {
  const uint32_t logits = b.view(x, 0, {8, 3}, {3, 1});
  b.library(LibraryFn::CrossEntropyWithGradient,
            {logits, b.view(y, 0, {8}, {1}), b.keep({}), b.keep({}), b.keep({}), logits}, {-100});
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->input, 1u);
  EXPECT_THAT(found->ofSample, ElementsAre(1, 1, 1, 1));
}

TEST_F(FindTargetsTest, AProgramWithoutCrossEntropyHasNone) {
  b.library(LibraryFn::Copy, {x, b.keep({8, 3})});
  EXPECT_FALSE(find());
}

/// Stage 1 reads labels of its own, which lie where stage 0 has x and y; those of stage 0 are no targets.
TEST_F(FindTargetsTest, OnTheStageThatHasTheLoss) {
  b.segment();
  b.addStage();
  b.input("y", {2, 4}, DType::I64, 3);
  const uint32_t labels = b.input("labels", {2, 4}, DType::I64, 3);
  const uint32_t logits = b.keep({8, 3});
  b.library(LibraryFn::CrossEntropyForward,
            {logits, b.view(labels, 0, {8}, {1}), b.keep({}), b.keep({8}), b.keep({})}, {-100});
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->input, 2u) << "x, y, labels";
  EXPECT_THAT(found->ofSample, ElementsAre(1, 1, 1, 1));
}

} // namespace
} // namespace ds::rt
