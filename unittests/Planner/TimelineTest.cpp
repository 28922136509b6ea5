//===- TimelineTest.cpp - A planned step over time --------------------------------===//
//
// Three layers in two streams and more, at each ZeRO stage: what the timeline says of bytes is the plan, what
// it says of times is possible.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Ds.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Planner/PlanSummary.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
namespace dialect = mlir::ds;
namespace report = ::ds::report;
using report::PlanTimeline;

/// A model of three products; `steps` micro-steps per step.
static std::string makeModel(int64_t ranks, int stage, int64_t steps) {
  std::string text =
      "module attributes {ds.training = #ds.training<gradient_accumulation_steps = " + std::to_string(steps) +
      ", zero_optimization = {stage = " + std::to_string(stage) +
      ", stage3_param_persistence_threshold = 0}>} {\n"
      "ds.mesh @mesh axes [dp = " +
      std::to_string(ranks) + "] samples dp zero dp\n";
  std::string arguments, body, input = "%x";
  for (std::string layer : {"0", "1", "2"}) {
    std::string name = "h." + layer + ".w";
    text += "ds.state @" + name +
            " role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<64x64xf32>\n";
    arguments += ", %w" + layer + ": tensor<64x64xf32> {ds.state = @" + name + "}";
    body += "%m" + layer + " = ds.matmul " + input + ", %w" + layer +
            " : tensor<32x64xf32>, tensor<64x64xf32> -> tensor<32x64xf32> loc(\"h." + layer + "\")\n%r" +
            layer + " = ds.tanh %m" + layer + " : tensor<32x64xf32> loc(\"h." + layer + "\")\n";
    input = "%r" + layer;
  }
  return text + "func.func @forward(%x: tensor<32x64xf32> {ds.input = \"x\"}" + arguments +
         ") -> tensor<f32> {\n" + body + "%l = ds.reduce sum " + input +
         " dims [0, 1] : tensor<32x64xf32> -> tensor<f32>\nreturn %l : tensor<f32>\n}\n}";
}

namespace {
class Timeline : public testing::Test {
protected:
  /// Plans a model.
  void plan(int64_t ranks, int stage, int64_t steps) {
    context.loadDialect<dialect::DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(makeModel(ranks, stage, steps), &context);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    dialect::buildPipelines(manager, dialect::Phase::Model, dialect::Phase::Planned, {});
    ASSERT_TRUE(succeeded(manager.run(*module)));
    timeline = dialect::timelineOfPlan(*module, rates);
    report = dialect::summarizePlan(*module, rates);
  }

  size_t countOf(const std::string &segment) const {
    return std::count_if(timeline.commands.begin(), timeline.commands.end(),
                         [&](const PlanTimeline::Command &command) { return command.segment == segment; });
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ::ds::cost::Rates rates;
  PlanTimeline timeline;
  report::PlanReport report;
};

/// The same at every stage of ZeRO, on one rank and on two.
class TimelineOfStage : public Timeline, public testing::WithParamInterface<int> {
protected:
  void SetUp() override { plan(GetParam() < 0 ? 1 : 2, std::max(GetParam(), 0), 4); }
};
} // namespace

INSTANTIATE_TEST_SUITE_P(Stages, TimelineOfStage, testing::Values(-1, 0, 1, 2, 3));

TEST_P(TimelineOfStage, HasThePeakOfThePlan) {
  const report::RankPlan &rank = report.ranks[0];
  std::vector<report::LivePoint> curve = liveCurve(timeline);
  auto peak = std::max_element(
      curve.begin(), curve.end(),
      [](const report::LivePoint &a, const report::LivePoint &b) { return a.total() < b.total(); });
  EXPECT_EQ(peak->command, timeline.peakCommand);
  EXPECT_EQ(peak->time, timeline.peakTime);
  EXPECT_EQ(peak->total(), rank.peakBytes);
  EXPECT_EQ(peak->bytes, rank.atPeak);
  EXPECT_EQ(timeline.peakBytes, rank.peakBytes);
  EXPECT_EQ(timeline.arenaBytes, rank.deviceArena);
  EXPECT_EQ(timeline.peakAt, rank.peakAt);
}

TEST_P(TimelineOfStage, KeepsBuffersApart) {
  std::vector<PlanTimeline::Buffer> &buffers = timeline.buffers;
  for (size_t a = 0; a < buffers.size(); ++a) {
    EXPECT_LE(buffers[a].begin, buffers[a].end);
    EXPECT_LE(buffers[a].end, timeline.seconds);
    EXPECT_LE(buffers[a].offset + buffers[a].bytes, timeline.arenaBytes);
    for (size_t b = 0; b < a; ++b) {
      bool meetInTime = buffers[a].begin < buffers[b].end && buffers[b].begin < buffers[a].end;
      bool meetInPlace = buffers[a].offset < buffers[b].offset + buffers[b].bytes &&
                         buffers[b].offset < buffers[a].offset + buffers[a].bytes;
      EXPECT_FALSE(buffers[b].offset >= 0 && buffers[a].offset >= 0 && meetInTime && meetInPlace)
          << buffers[a].name << " and " << buffers[b].name;
    }
  }
}

TEST_P(TimelineOfStage, ReservesWhatRunningCommandsUse) {
  for (const PlanTimeline::Buffer &buffer : timeline.buffers) {
    ASSERT_LT(buffer.beginCommand, buffer.endCommand);
    EXPECT_LE(buffer.begin, timeline.commands[buffer.beginCommand].begin) << buffer.name;
    EXPECT_GE(buffer.end, timeline.commands[buffer.endCommand - 1].end) << buffer.name;
  }
}

TEST_P(TimelineOfStage, RunsCommandsOfAStreamOneAfterTheOther) {
  std::vector<double> free(timeline.streams.size(), 0);
  for (const PlanTimeline::Command &command : timeline.commands) {
    EXPECT_GE(command.begin, free[command.stream]);
    EXPECT_GE(command.end, command.begin);
    free[command.stream] = command.end;
  }
  EXPECT_EQ(timeline.streams[0], "compute");
  EXPECT_DOUBLE_EQ(*std::max_element(free.begin(), free.end()), timeline.seconds);
}

TEST_P(TimelineOfStage, IsTheWholeStep) {
  size_t middle = 0; // changes of segment
  for (size_t index = 1; index < timeline.commands.size(); ++index)
    middle += timeline.commands[index].segment != timeline.commands[index - 1].segment;
  EXPECT_EQ(timeline.commands.front().segment, "first");
  EXPECT_EQ(timeline.commands.back().segment, "last");
  EXPECT_EQ(middle, 2u);
  unsigned once = llvm::count_if(module->lookupSymbol<func::FuncOp>("middle").getOps(), [](Operation &op) {
    return isa<dialect::LaunchOp, dialect::CallOp, dialect::CommunicateOp, dialect::RecordOp,
               dialect::WaitOp>(op);
  });
  EXPECT_EQ(countOf("middle"), 2 * once); // the second and the third of four
  EXPECT_DOUBLE_EQ(timeline.stepSeconds, timeline.seconds);
  EXPECT_TRUE(timeline.notes.empty());
}

TEST_P(TimelineOfStage, IsWhatTheReportPredicts) {
  EXPECT_DOUBLE_EQ(*report.predicted.stepSeconds, timeline.stepSeconds);
  EXPECT_DOUBLE_EQ(*report.predicted.computeSeconds, timeline.computeSeconds);
  EXPECT_DOUBLE_EQ(*report.predicted.exposedCommunicationSeconds, timeline.exposedCommunicationSeconds);
  EXPECT_EQ(timeline.exposedCommunicationSeconds > 0, GetParam() >= 0);
  double sum = 0;
  for (const report::TimeTerm &term : report.predicted.terms) {
    sum += term.seconds;
    EXPECT_FALSE(term.source.empty());
  }
  EXPECT_NEAR(sum, *report.predicted.stepSeconds, 1e-9 * sum);
  // Nine products of 32 x 64 x 64 in each of four micro-steps, but for the gradient of the input.
  double flops = 8 * 2.0 * 32 * 64 * 64 * 4;
  EXPECT_EQ(report.flopsPerStep, flops * report.world);
  EXPECT_DOUBLE_EQ(*report.predicted.tflopsPerDevice, flops / timeline.stepSeconds / 1e12);
}

TEST_F(Timeline, ShowsAnEndlessMiddleOnce) {
  plan(2, 3, 1000000);
  size_t shown = countOf("middle");
  double seconds = timeline.seconds, step = timeline.stepSeconds;
  EXPECT_EQ(timeline.notes, std::vector<std::string>{"@middle is shown once of 999998 times"});
  plan(2, 3, 4);
  double four = timeline.seconds;
  plan(2, 3, 3);
  EXPECT_EQ(countOf("middle"), shown);
  EXPECT_DOUBLE_EQ(timeline.seconds, seconds);
  EXPECT_NEAR(step, seconds + 999997 * (four - seconds), 1e-6 * step);
}

TEST_F(Timeline, TakesItsTimesFromTheCluster) {
  plan(2, 3, 1);
  ::ds::config::Cluster slow = rates.cluster();
  slow.inside.latencySeconds *= 1000;
  PlanTimeline slower = dialect::timelineOfPlan(*module, ::ds::cost::Rates(slow));
  EXPECT_DOUBLE_EQ(slower.commands.front().begin, timeline.commands.front().begin);
  EXPECT_GT(slower.exposedCommunicationSeconds, 10 * timeline.exposedCommunicationSeconds);
  EXPECT_EQ(slower.peakBytes, timeline.peakBytes);
}
