//===- BestLossesTest.cpp - Whether a held-out loss is worth a checkpoint --------------===//

#include "Saving/BestLosses.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ds::rt;

namespace {

using Losses = std::vector<EvalLoss>;

TEST(BestLosses, admitsWhatIsBetterThanOneOfTheBest) {
  const KeepRule rule{.best = 2};
  BestLosses best(rule);
  EXPECT_FALSE(best.admits({})) << "not evaluated";
  EXPECT_FALSE(best.admits(Losses{{"", NAN}}));
  for (const double loss : {3.0, 2.0}) {
    EXPECT_TRUE(best.admits(Losses{{"", loss}}));
    best.add(Losses{{"", loss}});
  }
  EXPECT_FALSE(best.admits(Losses{{"", 3.0}})) << "equal: the earlier one is the better";
  EXPECT_TRUE(best.admits(Losses{{"", 2.5}}));
  best.add(Losses{{"", 2.5}});
  EXPECT_FALSE(best.admits(Losses{{"", 2.75}})) << "3.0 is no longer among them";
}

TEST(BestLosses, admitsNothingWhereNoneAreKept) {
  const KeepRule rule;
  BestLosses best(rule);
  best.add(Losses{{"", 1.0}});
  EXPECT_FALSE(best.admits(Losses{{"", 0.5}}));
}

/// What rank 0 finds is what the others take, to the bit; only of checkpoints that the run continues from.
TEST(BestLosses, ranksTakeTheNumbersOfTheFirst) {
  const KeepRule rule{.best = 2, .bestOf = "valid"};
  BestLosses other(rule);
  other.unpack("0.1 7 ");
  EXPECT_FALSE(other.admits(Losses{{"valid", 7.0}}));
  EXPECT_TRUE(other.admits(Losses{{"code", 9.0}, {"valid", 0.1}}));
  EXPECT_FALSE(other.admits(Losses{{"code", 0.0}}));
  const ds::Result<std::string> none = other.pack("/nonexistent", std::nullopt);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, "") << "a run that begins anew has none";
}

} // namespace
