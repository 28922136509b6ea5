//===- KeepTest.cpp - Which checkpoints of a directory stay ---------------------------===//

#include "ds/Runtime/Checkpoint/Keep.h"
#include "ds/Runtime/Checkpoint/Store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace ds::rt;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

StoredCheckpoint stored(uint64_t step, std::vector<EvalLoss> losses = {}) {
  StoredCheckpoint checkpoint;
  checkpoint.name = "step-" + std::to_string(step);
  checkpoint.step = step;
  checkpoint.evaluations = std::move(losses);
  checkpoint.hasManifest = true;
  return checkpoint;
}

StoredCheckpoint loss(uint64_t step, double value) { return stored(step, {{"", value}}); }

std::set<std::string> kept(std::vector<StoredCheckpoint> checkpoints, const KeepRule &rule) {
  StoreListing listing;
  listing.checkpoints = std::move(checkpoints);
  return keptForGood(listing, rule, [](const StoredCheckpoint &each) { return each.save != "elsewhere"; });
}

/// The example of the header.
TEST(Keep, theBestOnesAndThoseOfSomeSteps) {
  const std::vector<StoredCheckpoint> all = {loss(3000, 3.4), loss(2500, 3.2), loss(2000, 3.3),
                                             loss(1500, 3.1), loss(1000, 4.0)};
  EXPECT_THAT(kept(all, {}), IsEmpty());
  EXPECT_THAT(kept(all, {.best = 1}), ElementsAre("step-1500"));
  EXPECT_THAT(kept(all, {.best = 2}), ElementsAre("step-1500", "step-2500"));
  EXPECT_THAT(kept(all, {.every = 1000}), ElementsAre("step-1000", "step-2000", "step-3000"));
  EXPECT_THAT(kept(all, {.best = 1, .every = 3000}), ElementsAre("step-1500", "step-3000"));
  EXPECT_EQ(kept(all, {.best = 9}).size(), 5u);
}

TEST(Keep, ofEqualLossesTheEarlierIsTheBetter) {
  EXPECT_THAT(kept({loss(9, 2), loss(10, 2), loss(8, 3)}, {.best = 1}), ElementsAre("step-9"));
}

/// Without a number, or with that of other data, a checkpoint is not among the best, however few there are.
TEST(Keep, whatWasNotEvaluatedIsNotBest) {
  EXPECT_THAT(kept({stored(1), loss(2, NAN), loss(3, INFINITY), loss(4, -1)}, {.best = 4}),
              ElementsAre("step-4"));
  const std::vector<StoredCheckpoint> two = {stored(1, {{"code", 1}, {"valid", 5}}),
                                             stored(2, {{"valid", 4}})};
  EXPECT_THAT(kept(two, {.best = 1, .bestOf = "valid"}), ElementsAre("step-2"));
  EXPECT_THAT(kept(two, {.best = 2, .bestOf = "code"}), ElementsAre("step-1"));
  EXPECT_THAT(kept(two, {.best = 1}), ElementsAre("step-1")) << "the first of each";
  EXPECT_THAT(kept(two, {.best = 1, .bestOf = ""}), IsEmpty());
}

TEST(Keep, whatIsNotWholeOrALinkDoesNotCount) {
  std::vector<StoredCheckpoint> all = {loss(1, 1), loss(2, 2), loss(3, 3), loss(4, 4)};
  all[0].problem = "damaged";
  all[1].isLink = true;
  all[2].save = "elsewhere";
  EXPECT_THAT(kept(all, {.best = 1, .every = 1}), ElementsAre("step-4"));
}

} // namespace
