//===- AutoPlanTest.cpp - Which programs are planned for an answer -----------------===//
//
// Programs are formulas: rules' time times a factor of the ZeRO stage, so that rules' order is not theirs.
//
//===---------------------------------------------------------------------------===//
#include "ds/Planner/AutoPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::planner;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {
class AutoPlan : public testing::Test {
protected:
  AutoPlan() {
    what.model = "config.json";
    what.shape.layers = 24, what.shape.hidden = 2048, what.shape.heads = 16;
    what.shape.vocab = 50304, what.shape.seq = 2048;
    what.plan.dtype = what.plan.gradientDtype = config::DType::BF16;
    what.plan.flashAttention = true;
    space.ranks = 8, space.globalBatch = 64;
    space.fixed = what.plan;
  }

  AutoQuestion question() { return {what, space, asked}; }

  /// Plans the program of a text: reads its stage, and takes `secondsOfStage` of it.
  ConfigPlanner planner() {
    return [this](const std::string &text, int64_t microBatch) -> Result<report::PlanReport> {
      ++made;
      if (error)
        return *error;
      config::ConfigSource source{"auto", text, {}, space.ranks, false};
      Result<config::Config> config = config::readConfig(source);
      EXPECT_TRUE(config);
      EXPECT_EQ(config->batch.micro, microBatch);
      report::PlanReport report;
      report.memoryLimit = cost::peakLimit(what.rates.cluster());
      report::RankPlan rank;
      rank.deviceArena = doesFit ? report.memoryLimit / 2 : report.memoryLimit + 1;
      report.ranks = {rank};
      report.predicted.stepSeconds = secondsOfStage[config->zero.stage];
      return report;
    };
  }

  AnalyticCase what{"", {}, {}, cost::Rates(config::builtinCluster("a100-80g")), 1, {}, ""};
  cost::SearchSpace space;
  std::vector<config::Setting> asked;
  std::array<double, 4> secondsOfStage = {4, 3, 2, 9};
  std::optional<Error> error;
  bool doesFit = true;
  int made = 0;
};
} // namespace

TEST_F(AutoPlan, TakesTheFastestOfTheProgramsThatArePlanned) {
  Result<AutoAnswer> answer = findAutoPlan(question(), planner());
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(answer->program);
  EXPECT_EQ(answer->programs, made);
  EXPECT_LE(made, mostAutoPrograms(what.shape.layers));
  EXPECT_TRUE(hasPass(answer->chosen.plan));
  EXPECT_EQ(answer->program->seconds, secondsOfStage[answer->chosen.plan.zeroStage]);
  const std::string line = spellAnswer(question(), *answer);
  EXPECT_THAT(line, HasSubstr("programs that were planned"));
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_THAT(configOf(question(), *answer), HasSubstr("as its program is planned"));
}

TEST_F(AutoPlan, NamesAFasterPlanOfWhichNoProgramCanBeMade) {
  // Short of memory for data parallelism alone, stages are faster by rules where nothing else is divided.
  what.shape.layers = 80, what.shape.hidden = 8192, what.shape.heads = 64;
  space.ranks = 512, space.globalBatch = 1024;
  space.tensor = space.sequence = false;
  Result<AutoAnswer> answer = findAutoPlan(question(), planner());
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(answer->program);
  ASSERT_TRUE(answer->faster);
  EXPECT_FALSE(hasPass(answer->faster->plan));
  EXPECT_LT(answer->faster->seconds, answer->chosen.seconds); // both by rules
  EXPECT_THAT(spellAnswer(question(), *answer), HasSubstr("no program of it was planned"));
  AutoQuestion alone = question();
  alone.asksRules = false;
  answer = findAutoPlan(alone, planner());
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->faster);
}

TEST_F(AutoPlan, LeavesOutDegreesThatAModelDoesNotTake) {
  // Short of memory for whole layers, the fastest by rules are split.
  what.shape.layers = 80, what.shape.hidden = 8192, what.shape.heads = 64;
  space.ranks = space.globalBatch = 64;
  space.sequence = false;
  const cost::Candidate first = plansForPrograms(what.shape, space, what.rates).front();
  ASSERT_GT(first.plan.tp, 1);
  const std::string key = "\"autotp_size\": " + std::to_string(first.plan.tp);
  int refused = 0;
  const ConfigPlanner choosy = [&](const std::string &text,
                                   int64_t microBatch) -> Result<report::PlanReport> {
    if (text.find(key) == std::string::npos)
      return planner()(text, microBatch);
    ++refused;
    return Error{ExitCode::Invalid, "ranks that share layers cannot hold the values", ""};
  };
  Result<AutoAnswer> answer = findAutoPlan(question(), choosy);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(refused, 1); // what stands in the way of one of a degree stands in the way of all
  ASSERT_TRUE(answer->program);
  EXPECT_NE(answer->chosen.plan.tp, first.plan.tp);
  EXPECT_TRUE(answer->refusal.empty());
}

TEST_F(AutoPlan, RulesAnswerWhereTheyAreAskedOrNoProgramCanBeMade) {
  AutoQuestion rules = question();
  rules.asksPrograms = false;
  Result<AutoAnswer> answer = findAutoPlan(rules, planner());
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->program);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(answer->chosen.seconds, fastestPlan(what.shape, space, what.rates)->seconds);

  error = Error{ExitCode::Invalid, "\"optimizer.type\" = \"Muon\" is not available in a program", ""};
  answer = findAutoPlan(question(), planner());
  ASSERT_TRUE(answer);
  EXPECT_EQ(made, 1); // what stands in the way of one stands in the way of all
  EXPECT_FALSE(answer->program);
  EXPECT_THAT(spellAnswer(question(), *answer), HasSubstr("no program was made: \"optimizer.type\""));

  AutoQuestion programs = question();
  programs.asksRules = false;
  answer = findAutoPlan(programs, planner());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, error->message);
}

TEST_F(AutoPlan, SaysWhereNoProgramFits) {
  doesFit = false;
  Result<AutoAnswer> answer = findAutoPlan(question(), planner());
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->program || hasPass(answer->chosen.plan));
  EXPECT_THAT(spellAnswer(question(), *answer), HasSubstr("by rules: no program of it was planned"));
  AutoQuestion programs = question();
  programs.asksRules = false;
  answer = findAutoPlan(programs, planner());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::DoesNotFit);
}
