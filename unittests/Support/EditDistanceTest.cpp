//===- EditDistanceTest.cpp - How far a word is from another ------------------------===//

#include "ds/Support/EditDistance.h"

#include <gtest/gtest.h>

using ds::editDistance;

namespace {

TEST(EditDistanceTest, EachEditCostsOne) {
  EXPECT_EQ(editDistance("steps", "steps"), 0u);
  EXPECT_EQ(editDistance("step", "steps"), 1u) << "an insertion";
  EXPECT_EQ(editDistance("stepss", "steps"), 1u) << "a deletion";
  EXPECT_EQ(editDistance("stops", "steps"), 1u) << "a substitution";
  EXPECT_EQ(editDistance("setps", "steps"), 1u) << "a swap of neighbours";
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
}

TEST(EditDistanceTest, OfNothingItIsTheLength) {
  EXPECT_EQ(editDistance("", "steps"), 5u);
  EXPECT_EQ(editDistance("steps", ""), 5u);
  EXPECT_EQ(editDistance("", ""), 0u);
}

} // namespace
