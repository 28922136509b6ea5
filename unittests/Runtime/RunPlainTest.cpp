//===- RunPlainTest.cpp - ds-run on a system that has less, with a clock that jumps -===//
#include "RankedRegression.h"
#include "RunFixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;

class RunPlainTest : public RunFixture {
protected:
  Outcome runPlain(const std::string &options) {
    std::istringstream words("p.dsx " + options);
    return finish(
        start({std::istream_iterator<std::string>(words), {}}, "", {"LD_PRELOAD=" DS_PLAIN_SYSTEM_SHIM}));
  }
};

/// Neither direct access nor files without names nor renames that exchange are needed to save, to go on, and
/// to save over what is there; and no decision hangs on the time of day.
TEST_F(RunPlainTest, SavesAndGoesOn) {
  write(RankedRegression(2).b.program);
  const std::string both = "--ranks 2 --timeout 20 --data data.safetensors ";
  const std::string saves = "--save s --save-every 2 --save-seconds 0.05 --resume auto ";
  ASSERT_EQ(run(both + "--steps 8 --log-jsonl whole.jsonl --save-weights whole.safetensors").code, 0);
  for (const std::string part : {"3", "5", "8"}) {
    const Outcome outcome =
        runPlain(both + saves + "--log-jsonl parts.jsonl --save-weights parts.safetensors --steps " + part);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const auto whole = log("whole.jsonl"), parts = log("parts.jsonl");
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t step = 0; step < whole.size(); ++step)
    EXPECT_EQ(parts[step]["loss"], whole[step]["loss"]);
  EXPECT_EQ(readBytes(at("parts.safetensors")), readBytes(at("whole.safetensors")));
  EXPECT_FALSE(fs::exists(at("parts.1.jsonl"))) << "a resumed run goes on with its log";
}

/// An earlier log is kept though no rename refuses to replace a file.
TEST_F(RunPlainTest, KeepsAnEarlierLog) {
  write(regression());
  for (int turn = 0; turn < 2; ++turn)
    ASSERT_EQ(runPlain("--data data.safetensors --steps 2 --log-jsonl l.jsonl").code, 0);
  EXPECT_EQ(log("l.jsonl").size(), 2u);
  EXPECT_EQ(log("l.1.jsonl").size(), 2u);
}

} // namespace
} // namespace ds::rt
