//===- RestartsTest.cpp - Jobs that die are started again, within reason ------------------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Training/Restarts.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;

namespace {

TEST(RestartPolicyTest, OnlyWhatMayPassIsTriedAgain) {
  for (const int code : {6, 7, 9, 70})
    EXPECT_TRUE(RestartPolicy::mayHelp(code)) << code;
  for (const int code : {0, 2, 3, 4, 5, 8, 75})
    EXPECT_FALSE(RestartPolicy::mayHelp(code)) << code;
}

TEST(RestartPolicyTest, WaitsLongerWithoutProgress) {
  RestartPolicy policy(100, std::nullopt);
  EXPECT_EQ(policy.afterEnd(7, std::nullopt), 1.0);
  EXPECT_EQ(policy.afterEnd(7, std::nullopt), 2.0);
  EXPECT_EQ(policy.afterEnd(7, 10), 0.5); // the first checkpoint is progress
  EXPECT_EQ(policy.afterEnd(7, 10), 1.0);
  EXPECT_EQ(policy.afterEnd(7, 20), 0.5);
}

TEST(RestartPolicyTest, ThreeEndsInVainAreEnough) {
  RestartPolicy policy(100, 5);
  EXPECT_TRUE(policy.afterEnd(7, 5));
  EXPECT_TRUE(policy.afterEnd(7, 5));
  EXPECT_FALSE(policy.afterEnd(7, 5));
}

/// A job that goes back saves steps before those that were there.
TEST(RestartPolicyTest, ALowerStepIsProgress) {
  RestartPolicy policy(100, 10);
  EXPECT_EQ(policy.afterEnd(7, 10), 1.0);
  EXPECT_EQ(policy.afterEnd(7, 5), 0.5);
  EXPECT_EQ(policy.afterEnd(7, std::nullopt), 1.0);
}

TEST(RestartPolicyTest, NoMoreThanAllowed) {
  RestartPolicy policy(2, std::nullopt);
  EXPECT_TRUE(policy.afterEnd(7, 1));
  EXPECT_TRUE(policy.afterEnd(7, 2));
  EXPECT_FALSE(policy.afterEnd(7, 3));
  EXPECT_EQ(policy.restarts(), 2u);
}

class RestartsTest : public RunFixture {
protected:
  /// Process of a rank of `launcher`.
  static pid_t rankOf(pid_t launcher) {
    std::ifstream file("/proc/" + std::to_string(launcher) + "/task/" + std::to_string(launcher) +
                       "/children");
    pid_t rank = 0;
    file >> rank;
    return rank;
  }
  bool has(const std::string &name) { return fs::exists(at("s/" + name + "/manifest.json")); }
};

/// Killed twice behind checkpoints, the job ends with the losses of a run that nobody killed.
TEST_F(RestartsTest, AKilledJobGoesOn) {
  for (const uint32_t ranks : {1u, 2u}) {
    write(ranks == 1 ? regression() : RankedRegression(2).b.program);
    const std::string number = std::to_string(ranks);
    ASSERT_EQ(run("--data data.safetensors --steps 3000 --log-jsonl whole.jsonl --ranks " + number).code, 0);
    const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "3000", "--save", "s",
                               "--save-every", "100", "--keep", "100", "--restarts", "5", "--ranks", number,
                               "--log-jsonl", "log.jsonl", "--weights", "none"});
    for (const char *step : {"step-200", "step-600"}) {
      ASSERT_TRUE(waitUntil([&] { return has(step); }));
      ::kill(rankOf(child), SIGKILL);
    }
    const Outcome outcome = finish(child);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr("the job has ended with exit code 7: starts again in 0.5 s, from step "));
    std::map<uint64_t, double> losses;
    for (const nlohmann::json &line : log("log.jsonl"))
      losses[line["step"]] = line["loss"];
    for (const nlohmann::json &line : log("whole.jsonl"))
      ASSERT_EQ(losses[line["step"]], line["loss"].get<double>()) << line["step"];
    for (const char *name : {"s", "log.jsonl", "whole.jsonl"})
      fs::remove_all(at(name));
  }
}

/// What was in the directory before is no reason to go on from it: the job has gone back before it.
TEST_F(RestartsTest, AJobThatHasSavedNothingStartsAsItWasStarted) {
  write(regression());
  ASSERT_EQ(run("--data data.safetensors --steps 8 --save s --save-every 2 --keep 9").code, 0);
  const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--resume",
                             "s/step-2", "--save", "s", "--restarts", "5", "--log-jsonl", "log.jsonl"});
  ASSERT_TRUE(waitUntil([&] { return hasText(at("log.jsonl"), "\"step\":3,"); }));
  ::kill(rankOf(child), SIGKILL);
  ASSERT_TRUE(waitUntil([&] { return hasText(at("err"), "starts again in 1 s, as it was started"); }));
  ASSERT_TRUE(waitUntil([&] { return hasText(at("err"), "after step 2 dropped"); }));
  // What the signal has it save is to be another step's.
  ASSERT_TRUE(waitUntil([&] { return hasText(at("log.jsonl"), "\"step\":9,"); }));
  ::kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("resumes from 's/step-8'")));
  EXPECT_FALSE(has("step-8")) << "it is set aside";
}

TEST_F(RestartsTest, WhatCannotPassIsNotTriedAgain) {
  write(regression());
  writeData("nan.safetensors", 64, /*badSample=*/kRows);
  const Outcome outcome = run("--data nan.safetensors --steps 6 --save s --restarts 5");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("starts again")));
}

TEST_F(RestartsTest, ASignalEndsTheJobForGood) {
  write(regression());
  const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--save", "s",
                             "--save-every", "100", "--restarts", "5"});
  ASSERT_TRUE(waitUntil([&] { return has("step-100"); }));
  ::kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("starts again")));
}

/// Also while the launcher waits before it starts the job again.
TEST_F(RestartsTest, ASignalEndsTheWaiting) {
  write(regression());
  fs::create_directory(at("busy"));
  const Result<StoreLock> lock = StoreLock::take(at("busy")); // every start fails with exit 6
  ASSERT_TRUE(lock);
  const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--save", "busy", "--restarts", "9"});
  ASSERT_TRUE(waitUntil([&] { return hasText(at("err"), "starts again in 2 s"); }));
  ::kill(child, SIGINT);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the job is not started again: it was asked to end"));
}

TEST_F(RestartsTest, NeedsADirectory) {
  write(regression());
  const Outcome outcome = run("--data data.safetensors --restarts 2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--restarts needs --save"));
}

} // namespace
