//===- RunCheckpointTest.cpp - Runs that save, end, and go on -----------------------------===//
//
// The real binary: what it keeps however it ends, what it passes over, what it refuses.
//
//===---------------------------------------------------------------------------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <sys/resource.h>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;
using testing::Not;

namespace {

class RunCheckpointTest : public RunFixture {
protected:
  RunCheckpointTest() { write(regression()); }

  /// Names of the whole checkpoints in `name`, newest first.
  std::vector<std::string> whole(const std::string &name) {
    std::vector<std::string> names;
    const Result<StoreListing> listing = listCheckpoints(at(name));
    for (const StoredCheckpoint &each : listing->checkpoints)
      if (each.problem.empty())
        names.push_back(each.name);
    return names;
  }
  /// The losses of a log by step.
  std::map<uint64_t, double> losses(const std::string &name) {
    std::map<uint64_t, double> all;
    for (const nlohmann::json &line : log(name))
      all[line["step"]] = line["loss"];
    return all;
  }
  /// Makes what a run without interruptions gives, to compare with.
  std::map<uint64_t, double> unbroken(int steps, const std::string &options = "") {
    const Outcome outcome = run("--data data.safetensors --log-jsonl unbroken.jsonl --steps " +
                                std::to_string(steps) + " " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return losses("unbroken.jsonl");
  }
  void flipByte(const std::string &path, size_t fromEnd) {
    std::vector<uint8_t> bytes = readBytes(at(path));
    bytes[bytes.size() - fromEnd] ^= 4;
    std::ofstream(at(path), std::ios::binary)
        .write(reinterpret_cast<char *>(bytes.data()), long(bytes.size()));
  }
  static constexpr const char *kFile = "/shard-00000-model-00001-of-00001.safetensors";
};

TEST_F(RunCheckpointTest, KeepsTheNewestAndTheLast) {
  const Outcome outcome = run("--data data.safetensors --steps 10 --save s --save-every 3 --keep 3");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(whole("s"), testing::ElementsAre("step-10", "step-9", "step-6"));
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint saved to 's/step-10'"));
}

TEST_F(RunCheckpointTest, GoesOnAsIfNeverStopped) {
  for (const std::string mode : {"sync", "async"}) {
    const std::map<uint64_t, double> expected = unbroken(9, "--shuffle --seed 5");
    ASSERT_EQ(run("--data data.safetensors --shuffle --seed 5 --steps 4 --save s --save-mode " + mode).code,
              0);
    const Outcome outcome =
        run("--data data.safetensors --steps 9 --save s --resume auto --log-jsonl rest.jsonl");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const auto &[step, loss] : losses("rest.jsonl"))
      EXPECT_EQ(loss, expected.at(step)) << mode << " step " << step;
    EXPECT_EQ(losses("rest.jsonl").begin()->first, 5u);
    fs::remove_all(at("s"));
    fs::remove(at("rest.jsonl"));
  }
}

/// Steps that are repeated are there once, and each line says when it was written and after how many
/// samples.
TEST_F(RunCheckpointTest, ALogGoesOnToo) {
  const std::string options =
      "--data data.safetensors --save s --save-every 2 --log-jsonl log.jsonl --steps ";
  ASSERT_EQ(run(options + "5").code, 0);
  fs::remove_all(at("s/step-5")); // as if it had been killed before this save
  const Outcome resumed = run(options + "7 --resume auto");
  ASSERT_EQ(resumed.code, 0);
  EXPECT_THAT(resumed.err, HasSubstr("log 'log.jsonl': 1 line after step 4 dropped, which is repeated"));
  const std::vector<nlohmann::json> lines = log("log.jsonl");
  ASSERT_EQ(lines.size(), 7u);
  double time = 1.6e9; // of 2020
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[i]["samples"], (i + 1) * kRows);
    EXPECT_FALSE(lines[i].contains("tokens")) << "the model reads none";
    EXPECT_GE(lines[i]["time"].get<double>(), time);
    time = lines[i]["time"];
  }
}

/// It looks at a checkpoint, and makes no step again.
TEST_F(RunCheckpointTest, AnEvaluationLeavesTheLogAsItIs) {
  ASSERT_EQ(run("--data data.safetensors --steps 4 --save s --save-every 2 --log-jsonl log.jsonl").code, 0);
  ASSERT_EQ(run("--data data.safetensors --eval-only --resume s/step-2 --log-jsonl log.jsonl").code, 0);
  const std::vector<nlohmann::json> lines = log("log.jsonl");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[3]["step"], 4);
  EXPECT_TRUE(lines[4].contains("eval_loss"));
}

TEST_F(RunCheckpointTest, AutoStartsAnewWhereThereIsNothing) {
  const Outcome outcome = run("--data data.safetensors --steps 2 --save s --resume auto");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("there is no checkpoint in 's': starts from the beginning"));
}

TEST_F(RunCheckpointTest, AFinishedRunHasNothingToDo) {
  ASSERT_EQ(run("--data data.safetensors --steps 3 --save s").code, 0);
  const Outcome outcome = run("--data data.safetensors --steps 3 --save s --resume auto");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("step 4")));
  EXPECT_THAT(whole("s"), testing::ElementsAre("step-3"));
}

TEST_F(RunCheckpointTest, SavesByTheClock) {
  write(regression());
  const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--save", "s",
                             "--save-seconds", "0.05"});
  EXPECT_TRUE(waitUntil([&] { return whole("s").size() >= 2; }));
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 75);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

TEST_F(RunCheckpointTest, ASignalEndsWithACheckpoint) {
  const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--save", "s",
                             "--log-jsonl", "log.jsonl"});
  waitForStep(at("out"));
  ::kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 75);
  ASSERT_EQ(whole("s").size(), 1u);
  const std::string newest = whole("s")[0];
  EXPECT_THAT(outcome.err, HasSubstr("by SIGTERM; the checkpoint is 's/" + newest + "'"));
  EXPECT_EQ("step-" + std::to_string(losses("log.jsonl").rbegin()->first), newest);
}

/// Killed at many moments, the run that takes over finds a checkpoint and ends as if nothing had been.
TEST_F(RunCheckpointTest, KilledAnywhereItGoesOn) {
  const std::map<uint64_t, double> expected = unbroken(60);
  for (int moment = 0; moment < 12; ++moment) {
    const pid_t child = start({"p.dsx", "--data", "data.safetensors", "--steps", "60", "--save", "s",
                               "--save-every", "1", "--resume", "auto"});
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + 15 * moment));
    ::kill(child, SIGKILL);
    finish(child);
  }
  const Outcome outcome =
      run("--data data.safetensors --steps 60 --save s --resume auto --log-jsonl rest.jsonl");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const auto &[step, loss] : losses("rest.jsonl"))
    EXPECT_EQ(loss, expected.at(step)) << step;
  EXPECT_THAT(whole("s"), testing::Contains("step-60"));
  EXPECT_TRUE(listCheckpoints(at("s"))->leftovers.empty());
}

/// Files that may not grow stand for a full disk: training goes on, until three saves in a row have failed.
/// What was saved before stays.
TEST_F(RunCheckpointTest, WhatCannotBeSavedDoesNotEndARunAtOnce) {
  write(regression(/*seen=*/100000)); // more than the log will have
  const pid_t child = start(
      {"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--save", "s", "--save-every", "100"});
  ASSERT_TRUE(waitUntil([&] { return !whole("s").empty(); }));
  const rlimit limit{200000, 200000};
  ::prlimit(child, RLIMIT_FSIZE, &limit, nullptr);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("training continues (1 of 3 failures in a row)"));
  EXPECT_THAT(outcome.err, HasSubstr("training continues (2 of 3 failures in a row)"));
  EXPECT_THAT(outcome.err, HasSubstr("3 saves in a row have failed"));
  EXPECT_THAT(outcome.err, HasSubstr("the newest checkpoint is 's/" + whole("s").at(0)));
  EXPECT_TRUE(listCheckpoints(at("s"))->leftovers.empty());
}

//===----------------------------------------------------------------------===//
// What is passed over, and what is refused
//===----------------------------------------------------------------------===//

TEST_F(RunCheckpointTest, DamageIsPassedOverOrRefused) {
  const std::map<uint64_t, double> expected = unbroken(8);
  ASSERT_EQ(run("--data data.safetensors --steps 6 --save s --save-every 3").code, 0);
  flipByte("s/step-6" + std::string(kFile), 8);

  const Outcome refused = run("--data data.safetensors --steps 8 --resume s");
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("step-6" + std::string(kFile) + "' is damaged: bytes 0 to "));
  EXPECT_THAT(refused.err, HasSubstr("the next older one is 's/step-3'"));

  const Outcome passed =
      run("--data data.safetensors --steps 8 --save s --resume auto --log-jsonl rest.jsonl");
  EXPECT_EQ(passed.code, 0) << passed.err;
  EXPECT_THAT(passed.err, HasSubstr("passed over 's/step-6': "));
  EXPECT_EQ(losses("rest.jsonl").begin()->first, 4u);
  for (const auto &[step, loss] : losses("rest.jsonl"))
    EXPECT_EQ(loss, expected.at(step)) << step;
}

TEST_F(RunCheckpointTest, AnUnfinishedSaveIsPassedOver) {
  ASSERT_EQ(run("--data data.safetensors --steps 6 --save s --save-every 3").code, 0);
  fs::remove(at("s/step-6/manifest.json"));
  fs::create_directory(at("s/step-7.tmp-12"));
  const Outcome outcome = run("--data data.safetensors --steps 6 --save s --resume auto --dry-run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("passed over: 's/step-6' has no manifest.json"));
  EXPECT_THAT(outcome.err, HasSubstr("left in 's' by unfinished saves or removals: step-7.tmp-12 ("));
  EXPECT_THAT(outcome.out, HasSubstr("would resume from 's/step-3' after step 3, with 24 samples consumed"));
}

TEST_F(RunCheckpointTest, ADryRunTouchesNothing) {
  ASSERT_EQ(run("--data data.safetensors --steps 2 --save s").code, 0);
  const auto before = fs::last_write_time(at("s"));
  const Outcome outcome =
      run("--data data.safetensors --steps 4 --save s --resume auto --dry-run --log-jsonl log.jsonl");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the run would resume to the bit"));
  EXPECT_EQ(fs::last_write_time(at("s")), before);
  EXPECT_FALSE(fs::exists(at("log.jsonl")));
}

TEST_F(RunCheckpointTest, OtherDataAndSeedsAreRefused) {
  writeData("other.safetensors", 40);
  ASSERT_EQ(run("--data data.safetensors --steps 2 --seed 4 --save s").code, 0);
  const Outcome data = run("--data other.safetensors --steps 4 --resume s");
  EXPECT_EQ(data.code, 3);
  EXPECT_THAT(data.err, HasSubstr("the data are not those that the checkpoint was trained on"));
  EXPECT_EQ(run("--data other.safetensors --steps 4 --resume s --new-data").code, 0);
  const Outcome seed = run("--data data.safetensors --steps 4 --resume s --seed 5");
  EXPECT_EQ(seed.code, 2);
  EXPECT_THAT(seed.err, HasSubstr("the checkpoint was made with seed 4"));
}

TEST_F(RunCheckpointTest, AnotherModelIsRefusedWithAllNames) {
  ASSERT_EQ(run("--data data.safetensors --steps 2 --save s").code, 0);
  Program other = regression();
  other.states[0].name = "v";
  write(other);
  for (const char *resume : {"--resume s", "--resume auto --save s"}) {
    const Outcome outcome = run(std::string("--data data.safetensors --steps 4 ") + resume);
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("missing (1): 'v'"));
    EXPECT_THAT(outcome.err, HasSubstr("unknown (1): 'w'"));
  }
}

TEST_F(RunCheckpointTest, ADirectoryIsOneRuns) {
  const pid_t child =
      start({"p.dsx", "--data", "data.safetensors", "--steps", "100000000", "--save", "s"}, "1");
  waitForStep(at("out1"));
  const Outcome second = run("--data data.safetensors --steps 2 --save s");
  EXPECT_EQ(second.code, 6);
  EXPECT_THAT(second.err, HasSubstr("another run saves its checkpoints there"));
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child, "1").code, 75);
}

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

TEST_F(RunCheckpointTest, RanksSaveAndGoOnTogether) {
  write(RankedRegression(2).b.program);
  const std::map<uint64_t, double> expected = unbroken(9, "--ranks 2");
  ASSERT_EQ(run("--ranks 2 --data data.safetensors --steps 5 --save s --save-every 2").code, 0);
  EXPECT_THAT(whole("s"), testing::ElementsAre("step-5", "step-4"));
  const Outcome outcome =
      run("--ranks 2 --data data.safetensors --steps 9 --save s --resume auto --log-jsonl r.jsonl");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const auto &[step, loss] : losses("r.jsonl"))
    EXPECT_EQ(loss, expected.at(step)) << step;
}

/// Only rank 1 reads the damaged file: rank 0 passes over with it.
TEST_F(RunCheckpointTest, WhatOneRankCannotReadNoneUses) {
  write(RankedRegression(2).b.program);
  ASSERT_EQ(run("--ranks 2 --data data.safetensors --steps 4 --save s --save-every 2").code, 0);
  flipByte("s/step-4/shard-00001-model-00001-of-00002.safetensors", 4);
  const Outcome passed = run("--ranks 2 --data data.safetensors --steps 5 --save s --resume auto");
  EXPECT_EQ(passed.code, 0) << passed.err;
  EXPECT_THAT(passed.err, HasSubstr("passed over 's/step-4': rank 0: "));
  const Outcome refused = run("--ranks 2 --data data.safetensors --steps 5 --resume s/step-4");
  EXPECT_NE(refused.code, 0);
}

} // namespace
