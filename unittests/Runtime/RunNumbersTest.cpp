//===- RunNumbersTest.cpp - ds-run when losses go wrong, as its users see it ---===//
#include "RankedRegression.h"
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
  expectRefusal("--spike-factor 3 --on-spike skip", 3,
                "p.dsx: --on-spike skip: the program updates its states whatever its loss is");
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
  const Outcome skipping = run("--data data.safetensors --steps 49 --on-nan skip");
  EXPECT_EQ(skipping.code, 0);
  const std::string told = "step 1: repeated, the step has neither a NaN nor an infinity";
  EXPECT_THAT(skipping.err, HasSubstr(told));
  EXPECT_EQ(skipping.err.find("repeated", skipping.err.find(told) + told.size()), std::string::npos)
      << "told more than once";
  const Outcome outcome = run("--data data.safetensors --steps 60 --on-nan skip");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 50: 50 steps in a row were skipped for gradients that are not"));
}

/// The states of a first step can be had again, and then the step can be repeated.
TEST_F(RunNumbersTest, NamesTheFirstLostNumber) {
  writeData("bad.safetensors", 64, /*badSample=*/5);
  const Outcome alone = run("--data bad.safetensors --steps 3");
  EXPECT_EQ(alone.code, 8);
  EXPECT_THAT(alone.err, HasSubstr("step 1: the first number that is not finite: micro-step 1 of 1, "));
  EXPECT_THAT(alone.err, HasSubstr("the input 'x' has nan at element 30 of f32[8, 6]")); // 5 rows of 6
  writeData("big.safetensors", 64, /*badSample=*/5, /*badValue=*/3e38f);
  EXPECT_THAT(run("--data big.safetensors --steps 3").err,
              HasSubstr("micro-step 1 of 1, command 2: 'loss' has inf at element 0 of f32[]"))
      << "the mean of squares is the first that overflows";
}

TEST_F(RunNumbersTest, NamesTheRankThatHasLostIt) {
  writeData("bad.safetensors", 64, /*badSample=*/5); // rows 4 to 7 of each batch are rank 1's
  for (const std::string weights : {"", "--weights w.safetensors"}) {
    write(RankedRegression(2).b.program);
    if (!weights.empty())
      ASSERT_EQ(run("--ranks 2 --data data.safetensors --steps 1 --save-weights w.safetensors").code, 0);
    const Outcome outcome = run("--ranks 2 --timeout 20 --data bad.safetensors --steps 3 " + weights);
    EXPECT_EQ(outcome.code, 8);
    EXPECT_THAT(outcome.err,
                testing::ContainsRegex("step 1: the first number that is not finite: rank 1 .*the "
                                       "input 'x' has nan at element 6 of f32.4, 6"));
  }
}

/// Each rank leaves what it knows: the steps with their batches, and what its states are now.
TEST_F(RunNumbersTest, LeavesDiagnostics) {
  write(RankedRegression(2).b.program);
  writeData("bad.safetensors", 64, /*badSample=*/2 * kRows + 5);
  const Outcome outcome = run("--ranks 2 --timeout 20 --data bad.safetensors --steps 4 --diagnostics d");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("diagnostics are in 'd/diagnostics-step-3-rank-0.json', and beside it"));
  for (const char *rank : {"0", "1"}) {
    const std::vector<uint8_t> bytes =
        readBytes(at("d/diagnostics-step-3-rank-" + std::string(rank) + ".json"));
    const auto json = nlohmann::json::parse(bytes);
    EXPECT_EQ(json["rank"].dump(), rank);
    EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("step 3: the loss is nan"));
    ASSERT_EQ(json["steps"].size(), 3u);
    EXPECT_EQ(json["steps"][2]["batch"], 2);
    EXPECT_TRUE(json["steps"][1]["loss"].is_number() && json["steps"][2]["loss"].is_null());
    EXPECT_GT(json["states"][0]["elements"], 0);
    EXPECT_EQ(json["states"][0]["nan"], json["states"][0]["elements"]);
  }
}

TEST_F(RunNumbersTest, LeavesDiagnosticsBesideCheckpoints) {
  writeData("bad.safetensors", 64, /*badSample=*/2 * kRows + 5);
  EXPECT_EQ(run("--data bad.safetensors --steps 4 --save c --save-every 1").code, 8);
  EXPECT_TRUE(fs::exists(at("c/diagnostics-step-3-rank-0.json")));
  const Outcome resumed = run("--data data.safetensors --steps 4 --save c --resume auto --new-data");
  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(resumed.err.find("diagnostics"), std::string::npos)
      << "they are no checkpoint, and stand in no way";
  expectRefusal("--diagnostics none/d", 6, "'none/d': No such file or directory");
}

/// Behind the first step the states are lost with the numbers.
TEST_F(RunNumbersTest, SaysWhatNamingNeeds) {
  writeData("bad.safetensors", 64, /*badSample=*/kRows + 5);
  EXPECT_THAT(run("--data bad.safetensors --steps 3").err,
              HasSubstr("step 2: where it was lost first is not known: the step has changed the states; a "
                        "program with skip_bad_steps keeps them"));
}

/// Data with a bad sample in step 5, and without the batch of that step.
class RollbackTest : public RunFixture {
protected:
  RollbackTest() {
    writeData("bad.safetensors", 64, /*badSample=*/4 * kRows + 3);
    const Result<SafeTensorsFile> file = SafeTensorsFile::open(at("data.safetensors"));
    std::vector<std::vector<uint8_t>> kept;
    std::vector<TensorSource> sources;
    for (const TensorEntry &entry : file->entries()) {
      const auto *data = reinterpret_cast<const uint8_t *>(entry.data);
      const uint64_t batch = entry.bytes / 8;
      kept.emplace_back(data, data + 4 * batch).insert(kept.back().end(), data + 5 * batch, data + 8 * batch);
    }
    for (size_t i = 0; i < kept.size(); ++i)
      sources.push_back({std::string(file->entries()[i].name),
                         FileDType::F32,
                         {7 * kRows, file->entries()[i].shape[1]},
                         kept[i].data()});
    EXPECT_TRUE(writeSafeTensors(at("without.safetensors"), sources));
  }
  Outcome train(uint32_t world, const std::string &options) {
    write(RankedRegression(world).b.program);
    return run("--ranks " + std::to_string(world) + " --timeout 20 --log-jsonl log.jsonl " + options);
  }
  /// The loss that the log has last for each step.
  std::map<uint64_t, nlohmann::json> losses() {
    std::map<uint64_t, nlohmann::json> all;
    for (const nlohmann::json &line : log("log.jsonl"))
      all[line["step"]] = line["loss"];
    return all;
  }
};

/// As if the batch had never been there: the last two steps read the data from the start, in both.
TEST_F(RollbackTest, GoesOnBehindTheBatchThatWasBad) {
  for (uint32_t world : {1, 2})
    for (const std::string mode : {"sync", "async"}) {
      ASSERT_EQ(train(world, "--data without.safetensors --steps 9").code, 0);
      const auto expected = losses();
      const Outcome outcome = train(world, "--data bad.safetensors --steps 9 --on-nan rollback --save s "
                                           "--save-every 2 --save-mode " +
                                               mode);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_THAT(outcome.err,
                  HasSubstr("step 5: the loss is nan: back to the checkpoint of step 4; the data "
                            "continue after step 5's"));
      EXPECT_EQ(losses(), expected) << world << " ranks, " << mode;
      fs::remove_all(at("s"));
    }
}

/// A run that ends and goes on later knows where the data stand.
TEST_F(RollbackTest, IsRememberedByCheckpoints) {
  ASSERT_EQ(train(2, "--data without.safetensors --steps 9").code, 0);
  const auto expected = losses();
  ASSERT_EQ(train(2, "--data bad.safetensors --steps 6 --on-nan rollback --save s --save-every 2").code, 0);
  const Outcome outcome = train(2, "--data bad.safetensors --steps 9 --save s --resume auto");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(losses(), expected);
}

TEST_F(RollbackTest, NeedsACheckpoint) {
  const Outcome outcome =
      train(2, "--data bad.safetensors --steps 9 --on-nan rollback --save s --save-every 50");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err,
              HasSubstr("step 5: the loss is nan; going back: no checkpoint has been saved yet"));
}

TEST_F(RollbackTest, IsNoUseWhereAllIsBad) {
  writeData("all.safetensors", kRows, /*badSample=*/0);
  ASSERT_EQ(train(1, "--data data.safetensors --steps 2 --save s").code, 0);
  const Outcome outcome =
      train(1, "--data all.safetensors --new-data --steps 9 --on-nan rollback --save s --resume auto");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("step 3: the loss is nan, and 3 rollbacks have not helped"));
}

} // namespace
} // namespace ds::rt
