//===- LateUpdatesTest.cpp - Updates that a step leaves to the next one ---------------===//
#include "ProgramBuilder.h"

#include "Engine/LateUpdates.h"

#include <gtest/gtest.h>

namespace ds::rt {
namespace {

// A step that leaves updates begins the next one with another segment; on their own they are made once, and
// those of states that have become others never.
TEST(LateUpdates, BeginTheNextStep) {
  test::ProgramBuilder b;
  const uint32_t from = b.keep({1}), updated = b.state("w", {1});
  for (auto [buffer, value] : {std::pair(from, 1.0), {from, 2.0}, {updated, 3.0}})
    b.library(LibraryFn::Fill, {buffer}, {test::bits(value)});
  b.program.segments = {{"step", 0, 0, {Work::Forward, Work::Backward, Work::Update}, 0, 1},
                        {"rotated", 0, 0, {Work::Forward, Work::Backward, Work::Update}, 1, 1},
                        {"flush", 0, 0, {Work::Update}, 2, 1}};
  ASSERT_TRUE(verifyProgram(b.program));
  Result<std::unique_ptr<Executor>> loaded = Executor::load(std::move(b.program));
  ASSERT_TRUE(loaded);
  Executor &executor = **loaded;
  LateUpdates late;
  auto valueOf = [&](uint32_t buffer) { return *static_cast<float *>(executor.data(buffer)); };
  auto step = [&] { return late.runStep(executor, [](uint32_t) { return Status(); }); };
  EXPECT_FALSE(late.areLeft());
  ASSERT_TRUE(step());
  EXPECT_EQ(valueOf(from), 1);
  EXPECT_TRUE(late.areLeft());
  ASSERT_TRUE(step());
  EXPECT_EQ(valueOf(from), 2);
  ASSERT_TRUE(late.finish(executor));
  EXPECT_EQ(valueOf(updated), 3);
  EXPECT_FALSE(late.areLeft());
  *static_cast<float *>(executor.data(updated)) = 0;
  ASSERT_TRUE(late.finish(executor));
  EXPECT_EQ(valueOf(updated), 0);
  ASSERT_TRUE(step());
  EXPECT_EQ(valueOf(from), 1);
  late.drop();
  ASSERT_TRUE(step());
  EXPECT_EQ(valueOf(from), 1);
  EXPECT_EQ(valueOf(updated), 0);
}

} // namespace
} // namespace ds::rt
