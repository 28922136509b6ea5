//===- BoxTest.cpp - Ranges as boxes, and boxes as runs -------------------------------===//

#include "ds/Runtime/Checkpoint/Box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace ds::rt;

namespace {

using Shape = std::vector<int64_t>;

/// The logical elements of boxes, in order.
std::vector<uint64_t> elementsOf(const std::vector<Box> &boxes, const Shape &shape) {
  std::vector<uint64_t> elements;
  for (const Box &box : boxes)
    for (const ElementRun &run : runsOf(box, shape))
      for (uint64_t i = 0; i < run.count; ++i)
        elements.push_back(run.first + i);
  return elements;
}

TEST(Box, headBodyAndTailOfARange) {
  const std::vector<Box> boxes = boxesOf(Shape{4, 6}, 3, 17);
  EXPECT_THAT(boxes, testing::ElementsAre(Box{{0, 3}, {1, 3}}, Box{{1, 0}, {2, 6}}, Box{{3, 0}, {1, 2}}));
}

TEST(Box, aWholeTensorIsOneBox) {
  EXPECT_THAT(boxesOf(Shape{4, 6, 5}, 0, 120), testing::ElementsAre(Box{{0, 0, 0}, {4, 6, 5}}));
  EXPECT_THAT(boxesOf(Shape{}, 0, 1), testing::ElementsAre(Box{{}, {}}));
  EXPECT_THAT(boxesOf(Shape{4, 0}, 0, 0), testing::IsEmpty());
}

/// Every range of a few small tensors: its boxes are its elements in order, and no more boxes than stated.
TEST(Box, everyRangeIsItsBoxes) {
  for (const Shape &shape :
       {Shape{7}, Shape{4, 6}, Shape{1, 5}, Shape{3, 1, 4}, Shape{2, 3, 4}, Shape{2, 2, 3, 2}}) {
    uint64_t elements = 1;
    for (int64_t size : shape)
      elements *= static_cast<uint64_t>(size);
    for (uint64_t first = 0; first < elements; ++first)
      for (uint64_t count = 1; first + count <= elements; ++count) {
        const std::vector<Box> boxes = boxesOf(shape, first, count);
        std::vector<uint64_t> expected(count);
        for (uint64_t i = 0; i < count; ++i)
          expected[i] = first + i;
        ASSERT_EQ(elementsOf(boxes, shape), expected) << first << " " << count;
        ASSERT_LE(boxes.size(), 2 * shape.size() - 1);
      }
  }
}

TEST(Box, runsOfAColumnAreItsRows) {
  const std::vector<ElementRun> runs = runsOf({{1, 2}, {2, 3}}, Shape{4, 6});
  EXPECT_THAT(runs, testing::ElementsAre(ElementRun{8, 3, 0}, ElementRun{14, 3, 3}));
}

TEST(Box, runsGoThroughWholeDimensions) {
  EXPECT_THAT(runsOf({{0, 1, 0}, {2, 2, 5}}, Shape{2, 4, 5}),
              testing::ElementsAre(ElementRun{5, 10, 0}, ElementRun{25, 10, 10}));
  EXPECT_THAT(runsOf({{1, 0, 0}, {1, 4, 5}}, Shape{2, 4, 5}), testing::ElementsAre(ElementRun{20, 20, 0}));
  EXPECT_THAT(runsOf({{}, {}}, Shape{}), testing::ElementsAre(ElementRun{0, 1, 0}));
}

} // namespace
