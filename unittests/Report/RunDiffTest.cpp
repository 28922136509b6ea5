//===- RunDiffTest.cpp - What a plan expects against what a run has taken ---------===//

#include "ds/Report/RunDiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::report;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string slice(const std::string &name, const std::string &kind, double begin, double duration,
                  double bytes = 0, int process = 0) {
  return R"({"ph":"X","name":")" + name + R"(","cat":")" + kind + R"(","ts":)" + std::to_string(begin) +
         R"(,"pid":)" + std::to_string(process) + R"(,"tid":0,"dur":)" + std::to_string(duration) +
         R"(,"args":{"bytes":)" + std::to_string(bytes) + R"(,"flops":0}})";
}
std::string step(int number, double begin) {
  return R"({"ph":"i","name":"step )" + std::to_string(number) + R"(","ts":)" + std::to_string(begin) +
         R"(,"pid":0,"tid":0,"s":"t"})";
}
StepTrace trace(const std::vector<std::string> &events, int rank = 0) {
  std::string text = R"({"distributedInfo":{"rank":)" + std::to_string(rank) + R"(},"traceEvents":[)";
  for (size_t i = 0; i < events.size(); ++i)
    text += (i ? "," : "") + events[i];
  const Result<StepTrace> read = readTrace(text + "]}", "t.json");
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

/// The first step warms up: 9 s that do not count. The others take 1 and 3 ms.
TEST(RunDiff, MeansAreOfAllStepsButTheFirst) {
  const StepTrace read = trace({step(1, 0), slice("matmul h.0", "cpu_op", 1, 9e6), step(2, 1e7),
                                slice("matmul h.0", "cpu_op", 1e7, 1000, 8), step(3, 2e7),
                                slice("matmul h.0", "cpu_op", 2e7, 3000, 8)},
                               3);
  EXPECT_EQ(read.rank, 3u);
  EXPECT_EQ(read.steps, 2u);
  const TracedCommand &command = read.commands.at("matmul h.0");
  EXPECT_EQ(command.kind, "compute");
  EXPECT_DOUBLE_EQ(command.seconds, 0.002);
  EXPECT_DOUBLE_EQ(command.bytes, 8);
  EXPECT_DOUBLE_EQ(command.count, 1);
}

TEST(RunDiff, OfSeveralStagesTheFirstCounts) {
  const StepTrace read =
      trace({slice("matmul", "compute", 0, 1000), slice("matmul", "compute", 0, 5000, 0, 1)});
  EXPECT_DOUBLE_EQ(read.commands.at("matmul").seconds, 0.001);
}

/// Numbers stand below their headings, however long a name is; 60 characters of it are shown.
TEST(RunDiff, ColumnsStandBelowOneAnother) {
  const std::string name = "reduce_scatter transformer.h.0.attn.c_proj", longest(80, 'x');
  const StepTrace plan = trace({slice(name, "collective", 0, 100), slice(longest, "compute", 0, 100)});
  const std::string text = diffRun(plan, {plan}, "plan.json", "run.json");
  const std::string table = text.substr(text.find("by command"));
  const size_t end = table.find("planned s") + std::string("planned s").size();
  for (const std::string &row : {name, std::string(60, 'x')}) {
    const size_t begin = table.find(row);
    ASSERT_NE(begin, std::string::npos) << text;
    const std::string line = table.substr(begin - 2, table.find('\n', begin) - begin + 2);
    EXPECT_EQ(line.find("0.000100") + std::string("0.000100").size(), end) << table;
  }
  EXPECT_THAT(table, Not(HasSubstr(std::string(61, 'x'))));
}

/// 2 ms were planned, 3 ms measured; one command was not planned, and one did not run.
TEST(RunDiff, ComparesByKindLayerAndCommand) {
  const StepTrace plan =
      trace({slice("matmul h.0", "compute", 0, 2000, 64), slice("gelu h.0", "compute", 2000, 500),
             slice("all_gather h.0", "collective", 0, 100, 32)});
  const StepTrace run =
      trace({slice("matmul h.0", "cpu_op", 0, 3000, 64), slice("add h.1", "kernel", 3000, 1000),
             slice("all_gather h.0", "collective", 0, 400, 32)});
  const std::string text = diffRun(plan, {run}, "plan.json", "run.json");
  EXPECT_THAT(text, ContainsRegex("by kind"));
  EXPECT_THAT(text, ContainsRegex("compute +0\\.002500 +0\\.004000 +1\\.60 +64 +64\n"));
  EXPECT_THAT(text, ContainsRegex("collective +0\\.000100 +0\\.000400 +4\\.00 +32 +32\n"));
  EXPECT_THAT(text, ContainsRegex("h\\.0 +0\\.002600 +0\\.003400 +1\\.31"));
  EXPECT_THAT(text, ContainsRegex("add h\\.1 +- +0\\.001000 +-"));
  EXPECT_THAT(text, ContainsRegex("gelu h\\.0 +0\\.000500 +- +-"));
  EXPECT_THAT(text, Not(HasSubstr("lags")));
}

/// A plan that shows one of four micro-steps stands for all of them.
TEST(RunDiff, APlanThatShowsOneOfManyRunsIsMultiplied) {
  const StepTrace plan = trace({slice("matmul", "compute", 0, 1000, 16)});
  std::vector<std::string> events;
  for (int run = 0; run < 4; ++run)
    events.push_back(slice("matmul", "cpu_op", 1000 * run, 1000, 16));
  const std::string text = diffRun(plan, {trace(events)}, "p", "r");
  EXPECT_THAT(text, ContainsRegex("compute +0\\.004000 +0\\.004000 +1\\.00 +64 +64\n"));
  EXPECT_THAT(text, HasSubstr("counts as often as it has run"));
}

/// Rank 2 computes twice as long as the others, who stand in collectives meanwhile.
TEST(RunDiff, NamesTheRankThatLags) {
  const StepTrace plan = trace({slice("matmul", "compute", 0, 1000)});
  std::vector<StepTrace> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(trace({slice("matmul", "cpu_op", 0, rank == 2 ? 2000 : 1000)}, rank));
  EXPECT_THAT(diffRun(plan, ranks, "p", "r"),
              HasSubstr("rank 2 lags: it computes for 0.002000 s a step, 2.00 "
                        "times"));
}

TEST(RunDiff, WhatIsNoTraceIsRefused) {
  for (const char *text : {"", "{", "[]", R"({"traceEvents":3})", R"({"traceEvents":[]})"}) {
    const Result<StepTrace> read = readTrace(text, "t.json");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ExitCode::Corrupt);
  }
}

TEST(RunDiff, ALogIsComparedByTimeAndMemory) {
  const std::string log =
      "{\"step\":1,\"step_seconds\":9,\"peak_bytes\":{\"device\":100,\"host\":0,\"nvme\":0}}\n"
      "{\"step\":2,\"step_seconds\":0.5,\"peak_bytes\":{\"device\":200,\"host\":0,\"nvme\":0}}\n";
  const Result<std::vector<LoggedStep>> steps = readRunLog(log, "l.jsonl");
  ASSERT_TRUE(steps);
  PlanReport plan;
  plan.ranks.resize(1);
  plan.ranks[0].peakBytes = 200;
  plan.predicted.stepSeconds = 0.25;
  const std::string text = diffLog(plan, *steps, "p", "l");
  EXPECT_THAT(text, ContainsRegex("step, s .* 0\\.250000 +0\\.500000 +2\\.000"));
  EXPECT_THAT(text, ContainsRegex("device, bytes +200 +200 +1\\.000"));
  EXPECT_FALSE(readRunLog("{}\n", "l.jsonl"));
  EXPECT_FALSE(readRunLog("", "l.jsonl"));
}

} // namespace
