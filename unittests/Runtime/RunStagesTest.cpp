//===- RunStagesTest.cpp - ds-run on programs of two stages ------------------------------===//
//
// Whatever a run leaves behind is that of the same model as one stage, to the bit: a stage that has no data,
// no loss or only some of the states takes part in all that ranks do together.
//
//===---------------------------------------------------------------------------===//
#include "StagedRegression.h"

#include <fmt/format.h>

#include <set>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

class RunStagesTest : public RunFixture {
protected:
  RunStagesTest() {
    for (uint32_t stages : {1, 2})
      for (uint32_t dp : {1, 2})
        write(StagedRegression(stages, dp).b.program, name(stages, dp));
  }
  static std::string name(uint32_t stages, uint32_t dp) { return fmt::format("p{}x{}.dsx", stages, dp); }
  Outcome train(uint32_t stages, uint32_t dp, const std::string &options,
                const std::vector<std::string> &environment = {}) {
    return trainProgram(name(stages, dp), stages * dp, options, environment);
  }
  Outcome trainProgram(const std::string &program, uint32_t ranks, const std::string &options,
                       const std::vector<std::string> &environment = {}) {
    std::istringstream words(
        fmt::format("{} --ranks {} --timeout 20 --data data.safetensors {}", program, ranks, options));
    return finish(start({std::istream_iterator<std::string>(words), {}}, "", environment));
  }
  /// What a refused run says, in one step.
  std::string refusal(const Program &program, const std::string &options = "--steps 1") {
    write(program, "bad.dsx");
    const Outcome outcome = trainProgram("bad.dsx", program.world, options);
    EXPECT_NE(outcome.code, 0) << outcome.out;
    return outcome.err;
  }
  /// Loss, norm and held-out loss of each step.
  std::vector<std::vector<double>> curves(const std::string &file) {
    std::vector<std::vector<double>> steps;
    for (const auto &line : log(file))
      steps.push_back({line.at("loss"), line.at("grad_norm"), line.value("eval_loss", 0.0)});
    return steps;
  }
  void expectSame(const std::string &a, const std::string &b) {
    EXPECT_EQ(readBytes(at(a)), readBytes(at(b))) << a << ", " << b;
  }
};

constexpr const char *kAll =
    " --steps 6 --seed 3 --eval-data data.safetensors --eval-every 2 --check-replicas 1 ";

/// One order of sums: one stage and two, by each transport, on as many ranks along dp.
TEST_F(RunStagesTest, TrainAsOneStageDoes) {
  for (uint32_t dp : {1, 2}) {
    const Outcome one = train(1, dp, std::string(kAll) + "--save-weights one --log-jsonl one.jsonl");
    ASSERT_EQ(one.code, 0) << one.err;
    const auto expected = curves("one.jsonl");
    ASSERT_EQ(expected.size(), 6u);
    EXPECT_LT(expected[5][0], expected[0][0]);
    for (const char *transport : {"memory", "gloo"}) {
      const Outcome two =
          train(2, dp, std::string(kAll) + "--save-weights two --log-jsonl two.jsonl --log-ranks all",
                {std::string("DS_TRANSPORT=") + transport});
      ASSERT_EQ(two.code, 0) << two.err;
      EXPECT_EQ(curves("two.jsonl"), expected) << transport;
      for (uint32_t rank = 1; rank < 2 * dp; ++rank)
        EXPECT_EQ(curves(fmt::format("two.rank{}.jsonl", rank)), expected) << transport;
      expectSame("one", "two");
      EXPECT_THAT(two.out, HasSubstr(fmt::format("batch       {} x 2 x {} (", 4 / dp, dp)));
      EXPECT_THAT(two.out, HasSubstr("model       45 parameters"));
    }
  }
}

/// Values that the host sets and memory that no plan covers do not matter.
TEST_F(RunStagesTest, TrainWherePlansAreChecked) {
  ASSERT_EQ(train(1, 2, std::string(kAll) + "--save-weights one").code, 0);
  const Outcome two = train(2, 2, std::string(kAll) + "--save-weights two", {"DS_POISON=1"});
  ASSERT_EQ(two.code, 0) << two.err;
  expectSame("one", "two");
}

TEST_F(RunStagesTest, SayWhatEachStageHas) {
  const Outcome two = train(2, 2, "--steps 1 --trace t.json");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("memory      stage 0: "));
  EXPECT_THAT(two.out, HasSubstr("\n            stage 1: "));
  EXPECT_TRUE(hasText(at("t.rank2.json"), "rank 2, stage 1"));
  EXPECT_THAT(train(1, 2, "--steps 1").out, Not(HasSubstr("stage")));
}

/// h and its gradient are 2 x 5 floats of a rank, twice a step; along dp 30 or 15 gradients and on stage 1
/// the loss, of which each of two ranks sends 2 * ceil(n / 2); along pp the norm.
TEST_F(RunStagesTest, TellWhatRanksSendByAxes) {
  const Outcome two = train(2, 2, "--steps 2 --log-jsonl log.jsonl --log-ranks all");
  ASSERT_EQ(two.code, 0) << two.err;
  const nlohmann::json first = {{"all_reduce", {{"dp", 4 * 30}, {"pp", 4 * 2}}}, {"send", {{"pp", 2 * 40}}}},
                       last = {{"all_reduce", {{"dp", 4 * (16 + 2)}, {"pp", 4 * 2}}},
                               {"send", {{"pp", 2 * 40}}}};
  for (const auto &line : log("log.jsonl"))
    EXPECT_EQ(line["communication_bytes_by_axes"], first);
  for (const auto &line : log("log.rank3.jsonl"))
    EXPECT_EQ(line["communication_bytes_by_axes"], last);
  EXPECT_THAT(
      two.err,
      HasSubstr("sent by rank 0 in a step: all_reduce 120 B along dp, 8 B along pp; send 80 B along pp"));
}

/// Which ranks run which stage is said by a set of axes, whatever they are called: here the data's is pp.
TEST_F(RunStagesTest, FindStagesByTheirSetOfAxes) {
  ASSERT_EQ(train(1, 2, std::string(kAll) + "--save-weights one --log-jsonl one.jsonl").code, 0);
  Program program = StagedRegression(2, 2).b.program;
  program.mesh = {{"depth", 2}, {"pp", 2}};
  write(program, "renamed.dsx");
  const Outcome two = trainProgram(
      "renamed.dsx", 4, std::string(kAll) + "--save saves --save-weights two --log-jsonl two.jsonl");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(curves("two.jsonl"), curves("one.jsonl"));
  expectSame("one", "two");
  EXPECT_EQ(log("two.jsonl")[0]["communication_bytes_by_axes"]["send"], (nlohmann::json{{"depth", 2 * 40}}));
  const Outcome dry = train(1, 2, "--steps 7 --resume saves --dry-run");
  EXPECT_THAT(dry.out, HasSubstr("4 tensors"));
}

/// What is written on two stages is read on one, and the other way round.
TEST_F(RunStagesTest, ResumeOnAnyNumberOfStages) {
  ASSERT_EQ(train(1, 2, std::string(kAll) + "--save-weights whole").code, 0);
  for (const auto &[first, second] : {std::pair(2, 2), {2, 1}, {1, 2}}) {
    fs::remove_all(at("saves"));
    const std::string options = std::string(kAll) + "--save saves ";
    ASSERT_EQ(train(static_cast<uint32_t>(first), 2, "--steps 3 --seed 3 --save saves").code, 0);
    const Outcome dry = train(static_cast<uint32_t>(second), 2, "--steps 6 --resume saves --dry-run");
    EXPECT_EQ(dry.code, 0) << dry.err;
    EXPECT_THAT(dry.out, HasSubstr("would resume from 'saves/step-3' after step 3"));
    EXPECT_THAT(dry.out, HasSubstr("4 tensors"));
    const Outcome resumed =
        train(static_cast<uint32_t>(second), 2,
              "--steps 6 --eval-data data.safetensors --resume saves --save-weights resumed");
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expectSame("whole", "resumed");
  }
}

/// The two ranks of a stage divide its states; every state is there once.
TEST_F(RunStagesTest, SaveTheStatesOfAllStages) {
  ASSERT_EQ(train(1, 1, "--steps 2 --save one").code, 0);
  ASSERT_EQ(train(2, 1, "--steps 2 --save two").code, 0);
  for (const char *name : {"one", "two"}) {
    const auto json = nlohmann::json::parse(std::ifstream(at(std::string(name) + "/step-2/manifest.json")));
    std::set<std::string> tensors;
    for (const auto &tensor : json.at("tensors"))
      tensors.insert(tensor.at("name"));
    EXPECT_EQ(tensors, (std::set<std::string>{"w0", "w0.exp_avg", "w1", "w1.exp_avg"}));
  }
}

TEST_F(RunStagesTest, BeginWithAFileOfAllStages) {
  ASSERT_EQ(train(1, 1, "--steps 2 --save-weights w.safetensors").code, 0);
  for (uint32_t stages : {1, 2}) {
    const Outcome outcome =
        train(stages, 1, fmt::format("--weights w.safetensors --steps 2 --save-weights after{}", stages));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  expectSame("after1", "after2");
  const std::vector<float> w(30);
  const TensorSource sources[] = {{"w0", FileDType::F32, {StagedRegression::kMiddle, kIn}, w.data()}};
  ASSERT_TRUE(writeSafeTensors(at("half.safetensors"), sources));
  const Outcome half = train(2, 1, "--weights half.safetensors --steps 1");
  EXPECT_EQ(half.code, 3);
  EXPECT_THAT(half.err, HasSubstr("missing (1): w1"));
  EXPECT_THAT(half.err, Not(HasSubstr("unknown")));
}

TEST_F(RunStagesTest, EvaluateAlone) {
  ASSERT_EQ(train(1, 1, "--steps 2 --save saves").code, 0);
  const Outcome one = train(1, 1, "--eval-only --resume saves --log-jsonl one.jsonl"),
                two = train(2, 1, "--eval-only --resume saves --log-jsonl two.jsonl");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(log("one.jsonl")[0]["eval_loss"], log("two.jsonl")[0]["eval_loss"]);
  EXPECT_THAT(two.out, HasSubstr("eval_loss"));
}

/// A number that is lost is named where it was lost first: by the fifth command of stage 0, although the
/// first one of stage 1 gets it.
TEST_F(RunStagesTest, NameTheStageThatHasLostANumber) {
  writeData("data.safetensors", 64, /*badSample=*/1);
  write(StagedRegression(2, 1, /*idle=*/4).b.program);
  const Outcome outcome = trainProgram("p.dsx", 2, "--steps 2 --on-nan stop");
  EXPECT_EQ(outcome.code, 8);
  EXPECT_THAT(outcome.err, HasSubstr("rank 0 on host"));
  EXPECT_THAT(outcome.err, HasSubstr("the input 'x' has nan at element 6"));
}

TEST_F(RunStagesTest, GoBackTogether) {
  writeData("data.safetensors", 64, /*badSample=*/20);
  const Outcome one = train(1, 1, "--steps 5 --on-nan rollback --save one --save-every 1 --save-weights w1"),
                two = train(2, 1, "--steps 5 --on-nan rollback --save two --save-every 1 --save-weights w2");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.err, HasSubstr("back to the checkpoint of step 2"));
  expectSame("w1", "w2");
}

//===- Refusals ------------------------------------------------------------------===//

TEST_F(RunStagesTest, RefuseALossThatNoStageGives) {
  Program program = StagedRegression(2).b.program;
  std::erase_if(program.outputs, [](const Output &output) { return output.name == "loss"; });
  EXPECT_THAT(refusal(program), HasSubstr("none of its 2 stages gives 'loss'"));
}

/// Stage 0 says that its norm is a loss: the same run finds another value on stage 1.
TEST_F(RunStagesTest, RefuseALossOfTwoValues) {
  Program program = StagedRegression(2).b.program;
  ASSERT_EQ(program.outputs[0].name, "grad_norm");
  program.outputs[0].name = "loss";
  EXPECT_THAT(refusal(program), HasSubstr("step 1: stages 0 and 1 give 'loss' as "));
}

TEST_F(RunStagesTest, RefuseAnotherNumberOfRanks) {
  const Outcome outcome = trainProgram(name(2, 2), 3, "--steps 1");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("was compiled for 4 ranks, but 3 were started"));
}

} // namespace
} // namespace ds::rt
