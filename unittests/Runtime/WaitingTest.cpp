//===- WaitingTest.cpp - How the threads of parallel regions wait ----------------===//

#include "ds/Runtime/Process/Waiting.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

using namespace ds;
using namespace ds::rt;

TEST(WaitingTest, OnProcessorsOfItsOwnARankLooksForATenthOfAMillisecond) {
  EXPECT_EQ(chooseSpins({.mask = 2, .parentMask = 2}, 25.0), 4000u); // 100000 ns / 25 ns
  EXPECT_EQ(chooseSpins({.mask = 4, .parentMask = 16, .localRanks = 4}, 50.0), 2000u);
  EXPECT_EQ(chooseSpins({.mask = 2, .parentMask = 2}, 0.0), 100000u); // a clock that stood still
}

TEST(WaitingTest, OnProcessorsOfOthersItSleepsAtOnce) {
  EXPECT_EQ(chooseSpins({.mask = 2, .parentMask = 2, .localRanks = 4}, 25.0), 0u);   // mpirun --oversubscribe
  EXPECT_EQ(chooseSpins({.mask = 16, .parentMask = 16, .localRanks = 2}, 25.0), 0u); // --bind-to none
  EXPECT_EQ(chooseSpins({.mask = 64, .parentMask = 64, .quota = 8}, 25.0), 0u);
}

/// The variables that say how OpenMP waits, as they were after each test.
class UserChoiceTest : public ::testing::Test {
protected:
  static constexpr const char *kNames[] = {"OMP_WAIT_POLICY", kSpinVariable};
  void SetUp() override {
    for (size_t i = 0; i < 2; ++i) {
      if (const char *value = std::getenv(kNames[i]))
        before[i] = value;
      ::unsetenv(kNames[i]);
    }
  }
  void TearDown() override {
    for (size_t i = 0; i < 2; ++i)
      before[i].empty() ? ::unsetenv(kNames[i]) : ::setenv(kNames[i], before[i].c_str(), 1);
  }
  std::string before[2];
};

TEST_F(UserChoiceTest, EitherVariableIsObeyed) {
  EXPECT_FALSE(userChoseWaiting());
  for (const char *name : kNames) {
    ::setenv(name, "passive", 1);
    EXPECT_TRUE(userChoseWaiting()) << name;
    // Were it not obeyed, another program would now run in this process.
    char *argv[] = {const_cast<char *>("--gtest_filter=none"), nullptr};
    settleWaiting(argv);
    ::unsetenv(name);
  }
}

} // namespace
