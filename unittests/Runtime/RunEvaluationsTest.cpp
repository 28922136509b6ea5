//===- RunEvaluationsTest.cpp - Several held-out data, and the best of a run ---------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class RunEvaluationsTest : public RunFixture {
protected:
  RunEvaluationsTest() {
    write(regression());
    writeData("valid.safetensors", 16);
    writeData("code.safetensors", 24, 3, 4.0f); // an outlier: another loss
  }
  /// The steps of the checkpoints in a directory.
  std::vector<uint64_t> steps(const std::string &name) {
    std::vector<uint64_t> all;
    for (const StoredCheckpoint &each : listCheckpoints(at(name))->checkpoints)
      all.push_back(each.step);
    return all;
  }
  static constexpr const char *kBoth =
      " --eval-data valid=valid.safetensors --eval-data code=code.safetensors";
};

/// Each is what it is alone, in the log, in the checkpoint and on the terminal; the first one is eval_loss.
TEST_F(RunEvaluationsTest, EachHasItsLossByItsName) {
  const std::string steps = "--data data.safetensors --steps 4 ";
  std::map<std::string, double> alone;
  for (const std::string name : {"valid", "code"}) {
    ASSERT_EQ(run(steps + "--log-jsonl one.jsonl --eval-data " + name + ".safetensors").code, 0);
    alone[name] = log("one.jsonl")[3]["eval_loss"];
    EXPECT_FALSE(log("one.jsonl")[3].contains("eval")) << "it has no name";
    fs::remove(at("one.jsonl"));
  }
  ASSERT_NE(alone["valid"], alone["code"]);
  for (const uint32_t world : {1u, 2u}) {
    write(world == 1 ? regression() : RankedRegression(world).b.program);
    for (const char *name : {"s", "log.jsonl"})
      fs::remove_all(at(name));
    const Outcome outcome =
        run(steps + "--save s --eval-every 2 --log-jsonl log.jsonl --ranks " + std::to_string(world) + kBoth);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const nlohmann::json line = log("log.jsonl")[3];
    EXPECT_FALSE(log("log.jsonl")[2].contains("eval"));
    EXPECT_EQ(line["eval_loss"], line["eval"]["valid"]);
    const Result<Manifest> manifest = readManifest(at("s/step-4"));
    ASSERT_TRUE(manifest) << manifest.error().message;
    ASSERT_EQ(manifest->evaluations.size(), 2u);
    for (const EvalLoss &each : manifest->evaluations) {
      EXPECT_NEAR(each.loss, alone[each.name], world == 1 ? 0 : 1e-6 * alone[each.name]) << each.name;
      EXPECT_EQ(line["eval"][each.name], each.loss) << each.name;
    }
    EXPECT_THAT(outcome.out, testing::ContainsRegex("eval_loss [0-9.]+ of valid, [0-9.]+ of code"));
  }
  const Outcome only = run(
      std::string("--data data.safetensors --eval-only --resume s --ranks 2 --log-jsonl e.jsonl") + kBoth);
  ASSERT_EQ(only.code, 0) << only.err;
  EXPECT_EQ(log("e.jsonl")[0]["eval"], log("log.jsonl")[3]["eval"]);
  EXPECT_THAT(only.out, HasSubstr(" of code  after step 4  3 batches"));
}

/// The data have an outlier in each fourth batch, so that the loss goes up and down. The best ones are saved
/// as soon as they are known, and stay whatever comes after them; a run that resumes knows them.
TEST_F(RunEvaluationsTest, TheBestStayAndAreKnownAfterResuming) {
  writeData("data.safetensors", 32, 27, 6.0f);
  const std::string options =
      "--data data.safetensors --eval-data valid.safetensors --eval-every 1 --keep-best 2 "
      "--save s --resume auto --log-jsonl log.jsonl --steps ";
  for (const uint64_t end : {5, 11, 12}) {
    const Outcome outcome = run(options + std::to_string(end));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::pair<double, uint64_t>> losses;
    for (const nlohmann::json &line : log("log.jsonl"))
      losses.emplace_back(line["eval_loss"], line["step"]);
    ASSERT_EQ(losses.size(), end);
    std::ranges::sort(losses);
    const std::vector<uint64_t> there = steps("s");
    for (size_t i = 0; i < 2; ++i)
      EXPECT_THAT(there, testing::Contains(losses[i].second)) << "after step " << end;
    EXPECT_EQ(there.front(), end);
    EXPECT_LE(there.size(), 4u) << "two newest and two best";
  }
  EXPECT_THAT(steps("s"), testing::Not(ElementsAre(12, 11))) << "the losses of this test only fall";
}

TEST_F(RunEvaluationsTest, ThoseOfSomeStepsAreSavedAndStay) {
  const Outcome outcome = run("--data data.safetensors --steps 11 --save s --keep-every 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(steps("s"), ElementsAre(11, 9, 6, 3));
}

TEST_F(RunEvaluationsTest, AFileMayLookLikeANamedOne) {
  fs::copy(at("valid.safetensors"), at("a=valid.safetensors"));
  ASSERT_EQ(run("--data data.safetensors --steps 1 --log-jsonl l.jsonl --eval-data a=valid.safetensors").code,
            0);
  EXPECT_FALSE(log("l.jsonl")[0].contains("eval")) << "the file's name, and no name of the data";
}

TEST_F(RunEvaluationsTest, WhatContradictsIsRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {kBoth + std::string(" --eval-data valid.safetensors"),
       "--eval-data valid.safetensors: of several held-out data each has a name"},
      {kBoth + std::string(" --eval-data code=valid.safetensors"),
       "'code' is the name of other data before it"},
      {" --eval-data valid=", "--eval-data valid=: no data follow the name"},
      {" --save s --keep-best 2", "--keep-best needs --eval-data"},
      {kBoth + std::string(" --keep-best 2"), "--keep-best and --keep-every need --save"},
      {" --keep-every 2", "--keep-best and --keep-every need --save"},
      {" --save s --keep-best 0 --eval-data valid.safetensors", "--keep-best"},
      {" --save s --keep-every 0", "--keep-every"}};
  for (const auto &[options, message] : cases) {
    const Outcome outcome = run("--data data.safetensors --steps 1" + options);
    EXPECT_EQ(outcome.code, 2) << options << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_FALSE(fs::exists(at("s"))) << options;
  }
  const Outcome missing = run("--data data.safetensors --steps 1 --eval-data valid=none.safetensors");
  EXPECT_EQ(missing.code, 6) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("none.safetensors"));
}

} // namespace
