//===- EvaluateOnlyTest.cpp - The loss of data without a step ------------------------===//

#include "RankedRegression.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;
using testing::Not;

namespace {

class EvaluateOnlyTest : public RunFixture {
protected:
  EvaluateOnlyTest() { write(regression()); }
};

/// The loss is the one that training tells of the same data behind the same step, of a checkpoint and of
/// weights, and nothing is changed.
TEST_F(EvaluateOnlyTest, IsWhatTrainingTells) {
  writeData("held.safetensors", 16);
  ASSERT_EQ(run("--data data.safetensors --steps 5 --save s --save-weights w.safetensors --eval-data "
                "held.safetensors --log-jsonl log.jsonl")
                .code,
            0);
  const double expected = log("log.jsonl")[4]["eval_loss"];
  const std::vector<uint8_t> manifest = readBytes(at("s/step-5/manifest.json"));
  for (const std::string from : {"--resume s", "--weights w.safetensors"}) {
    fs::remove(at("eval.jsonl"));
    const Outcome outcome = run("--data held.safetensors --eval-only --log-jsonl eval.jsonl " + from);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_EQ(log("eval.jsonl").size(), 1u);
    EXPECT_EQ(log("eval.jsonl")[0]["eval_loss"], expected) << from;
    EXPECT_THAT(outcome.out, HasSubstr("eval_loss "));
    EXPECT_THAT(outcome.out, Not(HasSubstr("step 1/")));
  }
  EXPECT_EQ(readBytes(at("s/step-5/manifest.json")), manifest);
  const Outcome other = run("--data data.safetensors --eval-only --eval-data held.safetensors --resume s");
  EXPECT_THAT(other.out, HasSubstr("after step 5  2 batches")) << "--eval-data comes first";
}

TEST_F(EvaluateOnlyTest, RanksTellWhatOneTells) {
  std::vector<double> losses;
  for (const uint32_t world : {1u, 2u}) {
    const std::string ranks = std::to_string(world);
    write(RankedRegression(world).b.program);
    fs::remove(at("eval.jsonl"));
    const Outcome outcome =
        run("--data data.safetensors --eval-only --log-jsonl eval.jsonl --ranks " + ranks);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    losses.push_back(log("eval.jsonl")[0]["eval_loss"]);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6 * losses[0]);
}

TEST_F(EvaluateOnlyTest, WhatOnlyTrainingTakesIsRefused) {
  for (const std::string option : {"--save s", "--steps 3", "--shuffle", "--save-weights w.safetensors"}) {
    const Outcome outcome = run("--data data.safetensors --eval-only " + option);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("--eval-only and " + option.substr(0, option.find(' '))));
  }
  Program program = regression();
  program.stages[0].evaluation = -1;
  std::erase_if(program.outputs, [](const Output &output) { return output.name == "eval_loss"; });
  write(program);
  const Outcome outcome = run("--data data.safetensors --eval-only");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--eval-only: the program has no evaluation segment"));
}

} // namespace
