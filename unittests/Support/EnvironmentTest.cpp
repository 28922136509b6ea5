//===- EnvironmentTest.cpp - What counts as set -----------------------------------===//
#include "ds/Support/Environment.h"

#include <gtest/gtest.h>

namespace {

/// {isSet where a missing variable means no, where it means yes}.
std::pair<bool, bool> read(const char *value) {
  if (value)
    ::setenv("DS_TEST_SWITCH", value, 1);
  else
    ::unsetenv("DS_TEST_SWITCH");
  return {ds::isSet("DS_TEST_SWITCH", false), ds::isSet("DS_TEST_SWITCH", true)};
}

TEST(Environment, NothingSaidLeavesWhatIsUsual) {
  EXPECT_EQ(read(nullptr), std::pair(false, true));
  EXPECT_EQ(read(""), std::pair(false, true));
}

TEST(Environment, OnlyZeroSwitchesOff) {
  EXPECT_EQ(read("0"), std::pair(false, false));
  for (const char *value : {"1", "00", "/usr/lib/libcudnn.so.9"})
    EXPECT_EQ(read(value), std::pair(true, true)) << value;
}

} // namespace
