//===- RunNumbersTest.cpp - ds-run when losses go wrong, as its users see it ---===//
#include "RunFixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;

class RunNumbersTest : public RunFixture {
protected:
  RunNumbersTest() { write(regression()); }
  void expectRefusal(const std::string &options, int code, const std::string &why) {
    const Outcome outcome = run("--data data.safetensors " + options);
    EXPECT_EQ(outcome.code, code) << options;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << options;
    EXPECT_EQ(outcome.out.find("step 1/"), std::string::npos) << options;
  }
};

TEST_F(RunNumbersTest, RefusesRulesThatItCannotFollow) {
  const std::string nothing = "rollback: without --save nothing is there to go back to";
  expectRefusal("--on-nan rollback", 2, nothing);
  expectRefusal("--spike-factor 3 --on-spike rollback", 2, nothing);
  expectRefusal("--spike-factor 3 --on-spike skip", 2,
                "--on-spike skip: a loss is known when its step has changed the states");
  expectRefusal("--on-spike stop", 2, "--spike-factor");
  expectRefusal("--on-nan never", 2, "--on-nan");
  expectRefusal("--spike-factor 1", 2, "--spike-factor");
  expectRefusal("--on-nan skip", 3,
                "p.dsx: --on-nan skip: the program updates its states whatever its gradients are");
}

TEST_F(RunNumbersTest, EndsAtASpike) {
  writeData("spike.safetensors", 64, /*badSample=*/4 * kRows + 1, /*badValue=*/1000);
  const std::string options = "--data spike.safetensors --steps 5 --save-weights w.safetensors ";
  EXPECT_EQ(run(options).code, 0);
  fs::remove(at("w.safetensors"));
  EXPECT_EQ(run(options + "--spike-factor 10 --spike-window 5").code, 0) << "no five losses before step 5";
  fs::remove(at("w.safetensors"));
  const Outcome outcome = run(options + "--spike-factor 10 --spike-window 3");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 5: the loss is "));
  EXPECT_THAT(outcome.err, HasSubstr("the median of the last 3"));
  EXPECT_FALSE(fs::exists(at("w.safetensors")));
}

/// A program that keeps its states says so by an output; one that does for ever learns nothing.
TEST_F(RunNumbersTest, EndsWhenEveryStepIsSkipped) {
  ProgramBuilder b;
  b.program = regression();
  b.library(LibraryFn::Fill, {b.output("skipped")}, {bits(1.0)});
  b.program.segments[0].work = {Work::Forward, Work::Backward};
  b.program.stages[0].schedule.push_back({b.segment({Work::Update}, "overflow")});
  write(b.program);
  EXPECT_EQ(run("--data data.safetensors --steps 49 --on-nan skip").code, 0);
  const Outcome outcome = run("--data data.safetensors --steps 60 --on-nan skip");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 50: 50 steps in a row were skipped for gradients that are not"));
}

} // namespace
} // namespace ds::rt
