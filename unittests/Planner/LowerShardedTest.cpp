//===- LowerShardedTest.cpp - From sharded states to the program of N ranks -----===//
#include "ds/Dialect/Ds.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Planner/PlanSummary.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
namespace dialect = mlir::ds;
namespace rt = ::ds::rt;

namespace {

// One bucket of two parameters, 32 and 4 elements with 28 of padding, as stage 2 has it: parameters whole,
// the moment divided; the rank's part is updated in place and gathered.
const char *kModule = R"mlir(
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 1>} {
  ds.mesh @mesh axes [dp = 2] samples dp
  ds.state @w role(parameter) trainable aliases ["tied"] init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<8x4xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.bucket @bucket_0 members [@w, @b] offsets [0, 32] elements 64
  ds.state @bucket_0.parameter role(parameter) bucket(@bucket_0) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
  ds.state @bucket_0.sum role(moment) slot("sum") bucket(@bucket_0) shards [dp] init(#ds.init<constant, 0.5, 0.0>) home(device) : tensor<64xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  func.func @last(%g: tensor<64xf32> {ds.input = "g"}, %p: tensor<64xf32> {ds.state = @bucket_0.parameter},
                  %m: tensor<32xf32> {ds.state = @bucket_0.sum})
      -> (tensor<64xf32> {ds.state = @bucket_0.parameter}, tensor<32xf32> {ds.state = @bucket_0.sum}, tensor<f32> {ds.state = @loss})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %l = ds.reduce sum %g dims [0] : tensor<64xf32> -> tensor<f32>
    %loss = ds.all_reduce sum %l along dp carries statistic : tensor<f32>
    %s = ds.reduce_scatter sum %g along dp carries bucket : tensor<64xf32> -> tensor<32xf32>
    %q = ds.add %m, %s : tensor<32xf32>
    %own = ds.local_shard %p along dp : tensor<64xf32> -> tensor<32xf32>
    %new = ds.sub %own, %q : tensor<32xf32>
    %whole = ds.all_gather %new along dp carries parameter : tensor<32xf32> -> tensor<64xf32>
    return %whole, %q, %loss : tensor<64xf32>, tensor<32xf32>, tensor<f32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
})mlir";

class LowerSharded : public testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<dialect::DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kModule, &context);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    dialect::buildSchedulePipeline(manager, {}, {});
    dialect::buildPlanPipeline(manager, {});
    ASSERT_TRUE(succeeded(manager.run(*module)));
    FailureOr<rt::Program> lowered = dialect::lowerToProgram(*module, {});
    ASSERT_TRUE(succeeded(lowered));
    program = std::move(*lowered);
  }

  const rt::State &state(const std::string &name) {
    for (const rt::State &entry : program.states)
      if (entry.name == name)
        return entry;
    ADD_FAILURE() << "no state " << name;
    return program.states.front();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  rt::Program program;
};

TEST(LoweredEnums, CollectivesHaveOneName) {
  for (unsigned kind = 0; kind <= dialect::getMaxEnumValForCollectiveKind(); ++kind)
    EXPECT_EQ(dialect::stringifyCollectiveKind(static_cast<dialect::CollectiveKind>(kind)),
              rt::spell(static_cast<rt::CollectiveKind>(kind)));
}

TEST_F(LowerSharded, IsAProgramForAllRanks) {
  program.image = {0}; // what compiling the kernels would give
  program.targetCpu = "any";
  for (const rt::Command &command : program.commands)
    if (command.kind == rt::CommandKind::Kernel && command.numParams == 0)
      program.kernels[command.callee].extent = 1;
  ::ds::Status valid = rt::verifyProgram(program);
  EXPECT_TRUE(bool(valid)) << (valid ? "" : valid.error().message);
  EXPECT_EQ(program.world, 2u);
  EXPECT_EQ(program.mesh, (rt::Mesh{{"dp", 2}}));
  EXPECT_EQ(program.dataAxes, rt::AxisSet{0});
  ASSERT_EQ(program.collectives.size(), 3u);
  unsigned waits = 0, windows = 0;
  for (const rt::Command &command : program.commands)
    waits += command.kind == rt::CommandKind::WaitEvent;
  for (const rt::Buffer &buffer : program.buffers)
    windows += buffer.axisStrides == std::vector<uint64_t>{32 * sizeof(float)};
  EXPECT_GT(waits, 0u);
  EXPECT_EQ(windows, 1u);
  EXPECT_EQ(program.streams.size(), 3u);
  for (const rt::Collective &collective : program.collectives) {
    EXPECT_EQ(collective.elements, collective.kind == rt::CollectiveKind::AllReduce ? 1u : 32u);
    EXPECT_EQ(collective.axes, rt::AxisSet{0});
  }
}

TEST_F(LowerSharded, GivesMembersTheirWindowsAndParts) {
  EXPECT_EQ(program.states.size(), 5u); // two parameters, two moments, the loss
  const rt::State &w = state("w"), &b = state("b");
  EXPECT_EQ(w.layout, rt::Layout());
  EXPECT_EQ(w.aliases, std::vector<std::string>{"tied"});
  EXPECT_EQ(program.buffers[w.buffer].shape, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(program.buffers[b.buffer].offset, program.buffers[w.buffer].offset + 32 * sizeof(float));
  const rt::State &moment = state("b.sum");
  EXPECT_EQ(moment.owner, "b");
  EXPECT_EQ(moment.logicalShape, std::vector<int64_t>{4});
  EXPECT_EQ(moment.layout, (rt::Layout{{}, {0}, 32, 32}));
  EXPECT_EQ(moment.buffer, state("w.sum").buffer);
}

TEST_F(LowerSharded, ReportsPaddingAndTraffic) {
  ::ds::report::PlanReport report = dialect::summarizePlan(*module, ::ds::cost::Rates());
  EXPECT_EQ(report.world, 2u);
  ASSERT_EQ(report.ranks.size(), 1u);
  EXPECT_EQ(report.ranks[0].lastRank, 1u);
  EXPECT_EQ(report.parameters, 36);
  EXPECT_EQ(report.ranks[0].states.parameters, 36 * 4);
  EXPECT_EQ(report.ranks[0].states.optimizer, 18 * 4); // half of 36 moments
  EXPECT_EQ(report.ranks[0].states.scalars, 4);        // the loss
  EXPECT_EQ(report.ranks[0].states.padding, 28 * 4 + 14 * 4 + 60);
  using Traffic = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(report.predicted.communicationBytes,
            (Traffic{{"all_gather", 128}, {"all_reduce", 8}, {"reduce_scatter", 128}}));
  EXPECT_EQ(report.predicted.communicationByAxes,
            (std::vector<::ds::report::AxesTraffic>{
                {"all_gather", "dp", 128}, {"all_reduce", "dp", 8}, {"reduce_scatter", "dp", 128}}));
}

TEST_F(LowerSharded, KeepsWhatAStepIsExpectedToTake) {
  ::ds::report::PlanReport report = dialect::summarizePlan(*module, ::ds::cost::Rates());
  ASSERT_TRUE(report.predicted.stepSeconds);
  EXPECT_GT(*report.predicted.stepSeconds, 0);
  dialect::ProgramOptions options;
  options.stepSeconds = *report.predicted.stepSeconds;
  FailureOr<rt::Program> lowered = dialect::lowerToProgram(*module, options);
  ASSERT_TRUE(succeeded(lowered));
  EXPECT_EQ(lowered->predicted.stepSeconds, *report.predicted.stepSeconds);
}

/// The program of a planned module as text; failure with what was said of it.
FailureOr<rt::Program> lowerText(const std::string &text, std::string &said) {
  MLIRContext context;
  context.loadDialect<dialect::DsDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return failure();
  return dialect::lowerToProgram(*module, {});
}

/// A planned module on `mesh`, up to its first state.
std::string planned(StringRef mesh = "[dp = 2] samples dp") {
  return ("module attributes {ds.phase = #ds.phase<planned>} {\n"
          "  ds.arena device bytes 4096 lower_bound 0\n"
          "  ds.arena host bytes 128 lower_bound 0\n"
          "  ds.mesh @mesh axes " +
          mesh + "\n")
      .str();
}

TEST(Lower, NumbersEventsAsTheyCome) {
  std::string said;
  FailureOr<rt::Program> program = lowerText(
      planned() + "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                  "ds.record 5000000000 on compute\nds.record 70000 on compute\n"
                  "ds.wait 5000000000 on compute\nreturn\n}\n}",
      said);
  ASSERT_TRUE(succeeded(program)) << said;
  EXPECT_EQ(program->numEvents, 2u);
  std::vector<uint32_t> events;
  for (const rt::Command &command : program->commands)
    events.push_back(command.callee);
  EXPECT_EQ(events, (std::vector<uint32_t>{0, 1, 0}));
}

TEST(Lower, RefusesModulesWithoutPlan) {
  std::string said;
  EXPECT_TRUE(failed(lowerText("module attributes {ds.phase = #ds.phase<scheduled>} {\n}", said)));
  EXPECT_NE(said.find("expects phase planned, but got a module in phase scheduled"), std::string::npos)
      << said;
}

// A window of a rank's part, in its turn cut: each rank's begins where its part does.
TEST(Lower, ViewsOfViewsKeepTheirRanks) {
  std::string said;
  FailureOr<rt::Program> program = lowerText(
      planned() + "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                  "%a = ds.alloc activations offset 64 : !ds.buffer<tensor<64xf32>, [1], device>\n"
                  "%p = ds.view %a offset 0 shifts [dp = 32] : !ds.buffer<tensor<64xf32>, [1], device> -> "
                  "!ds.buffer<tensor<32xf32>, [1], device>\n"
                  "%q = ds.view %p offset 8 : !ds.buffer<tensor<32xf32>, [1], device> -> "
                  "!ds.buffer<tensor<4xf32>, [1], device>\n"
                  "ds.call fill(%q) writes [0] params [0.0 : f64] on compute : "
                  "!ds.buffer<tensor<4xf32>, [1], device>\nreturn\n}\n}",
      said);
  ASSERT_TRUE(succeeded(program)) << said;
  const rt::Buffer &buffer = program->buffers.at(program->operands.at(0));
  EXPECT_EQ(buffer.offset, 64u + 8 * 4);
  EXPECT_EQ(buffer.axisStrides, std::vector<uint64_t>{32 * 4});
}

// The program has the module's axes. A window that an axis shifts has strides along its sub-axes, and a state
// whose dimension is cut is a smaller tensor on each rank.
TEST(Lower, NamesTheAxesOfTheMesh) {
  std::string said;
  FailureOr<rt::Program> program = lowerText(
      planned("[dp = 1, sp = 2, tp.node = 2, tp.local = 2] samples dp") +
          "  ds.state @w role(parameter) shards [none, tp] init(#ds.init<zero, 0.0, 0.0>) home(device) "
          "{offset = 0 : i64} : tensor<6x8xf32>\n"
          "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
          "%a = ds.alloc activations offset 256 : !ds.buffer<tensor<8xf32>, [1], device>\n"
          "%p = ds.view %a offset 0 shifts [tp = 2] : !ds.buffer<tensor<8xf32>, [1], device> -> "
          "!ds.buffer<tensor<2xf32>, [1], device>\n"
          "ds.call fill(%p) writes [0] params [0.0 : f64] on compute : "
          "!ds.buffer<tensor<2xf32>, [1], device>\nreturn\n}\n}",
      said);
  ASSERT_TRUE(succeeded(program)) << said;
  EXPECT_EQ(program->world, 8u);
  EXPECT_EQ(program->mesh, (rt::Mesh{{"dp", 1}, {"sp", 2}, {"tp.node", 2}, {"tp.local", 2}}));
  EXPECT_EQ(program->dataAxes, rt::AxisSet{0});
  EXPECT_EQ(program->buffers.at(program->operands.at(0)).axisStrides, (std::vector<uint64_t>{0, 0, 16, 8}));
  ASSERT_EQ(program->states.size(), 1u);
  EXPECT_EQ(program->states[0].logicalShape, (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(program->states[0].layout, (rt::Layout{{rt::AxisSet(), {2, 3}}, {}, 0, 0}));
  EXPECT_EQ(program->buffers.at(program->states[0].buffer).shape, (std::vector<int64_t>{6, 2}));
}

// Views and what exists of them go into the layout; a rank's window has the state's rank, and a bucket's
// shard is of parts with their padding.
TEST(Lower, NamesViewsAndWhatExists) {
  std::string said;
  FailureOr<rt::Program> program =
      lowerText(planned("[dp = 2, tp = 2]") +
                    "  ds.state @qkv role(parameter) view [3, 4, 2, 5] shards [none, tp, none, none] "
                    "init(#ds.init<normal, 0.0, 1.0>) home(device) {offset = 0 : i64} : tensor<24x5xf32>\n"
                    "  ds.state @table role(parameter) view [8, 4] existing 7 shards [tp, none] "
                    "init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 256 : i64} : tensor<7x4xf32>\n"
                    "  ds.state @padded role(buffer) view [3, 2] existing 2 init(#ds.init<zero, 0.0, 0.0>) "
                    "home(device) "
                    "{offset = 320 : i64} : tensor<2x2xf32>\n"
                    "  ds.state @w role(parameter) view [6, 4, 5] existing 5 shards [none, tp, none] "
                    "init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<5x20xf32>\n"
                    "  ds.bucket @k members [@w] offsets [0] elements 64\n"
                    "  ds.state @k.exp_avg role(moment) slot(\"exp_avg\") bucket(@k) shards [dp] "
                    "init(#ds.init<zero, 0.0, 0.0>) home(device) {offset = 384 : i64} : tensor<64xf32>\n"
                    "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                    "return\n}\n}",
                said);
  ASSERT_TRUE(succeeded(program)) << said;
  ASSERT_EQ(program->states.size(), 4u);
  const rt::State &qkv = program->states[0], &table = program->states[1], &padded = program->states[2],
                  &moment = program->states[3];
  const rt::AxisSet none, tp{1};
  EXPECT_EQ(qkv.logicalShape, (std::vector<int64_t>{24, 5}));
  EXPECT_EQ(qkv.layout, (rt::Layout{{none, tp, none, none}, {}, 0, 0, {3, 4, 2, 5}}));
  EXPECT_EQ(program->buffers.at(qkv.buffer).shape, (std::vector<int64_t>{12, 5}));
  EXPECT_EQ(table.logicalShape, (std::vector<int64_t>{7, 4}));
  EXPECT_EQ(table.layout, (rt::Layout{{tp, none}, {}, 0, 0, {8, 4}, 7}));
  EXPECT_EQ(program->buffers.at(table.buffer).shape, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(padded.layout, (rt::Layout{{}, {}, 0, 0, {3, 2}, 2}));
  EXPECT_EQ(program->buffers.at(padded.buffer).shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(moment.name, "w.exp_avg");
  EXPECT_EQ(moment.layout, (rt::Layout{{none, tp, none}, {0}, 0, 32, {6, 4, 5}, 5}));
  EXPECT_EQ(program->buffers.at(moment.buffer).shape, std::vector<int64_t>{32});
}

// A program has no word for an axis along which there is nobody else.
TEST(Lower, RefusesCollectivesAlongAnAxisOfOneRank) {
  std::string said;
  EXPECT_TRUE(failed(
      lowerText(planned("[dp = 2, tp = 1]") +
                    "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                    "%a = ds.alloc activations offset 64 : !ds.buffer<tensor<8xf32>, [1], device>\n"
                    "ds.communicate all_reduce ins(%a) outs(%a) reduce sum along tp on compute : "
                    "(!ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<8xf32>, [1], device>\n"
                    "return\n}\n}",
                said)));
  EXPECT_NE(said.find("expects axes of several ranks, but got tp"), std::string::npos) << said;
}

TEST(Lower, ExchangesAndTransfersHaveStreamsOfTheirOwn) {
  std::string said;
  FailureOr<rt::Program> program = lowerText(
      planned() + "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                  "%a = ds.alloc activations offset 64 : !ds.buffer<tensor<8xf32>, [1], device>\n"
                  "%b = ds.alloc activations offset 128 : !ds.buffer<tensor<8xf32>, [1], device>\n"
                  "ds.communicate all_to_all ins(%a) outs(%b) along dp number 0 on exchange : "
                  "(!ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<8xf32>, [1], device>\n"
                  "ds.communicate broadcast ins(%b) outs(%b) along dp carries transfer number 1 on "
                  "transfer : (!ds.buffer<tensor<8xf32>, [1], device>) -> !ds.buffer<tensor<8xf32>, [1], "
                  "device>\nreturn\n}\n}",
      said);
  ASSERT_TRUE(succeeded(program)) << said;
  using rt::StreamKind;
  EXPECT_EQ(program->streams, (std::vector{StreamKind::Compute, StreamKind::Exchange, StreamKind::Transfer}));
  ASSERT_EQ(program->commands.size(), 2u);
  EXPECT_EQ(program->streams.at(program->commands[0].stream), StreamKind::Exchange);
  EXPECT_EQ(program->streams.at(program->commands[1].stream), StreamKind::Transfer);
}

TEST(Lower, ArenasAreThoseOfTheirSpaces) {
  std::string said;
  FailureOr<rt::Program> program = lowerText(
      planned() + "func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} {\n"
                  "%a = ds.alloc activations offset 64 : !ds.buffer<tensor<8xf32>, [1], device>\n"
                  "%h = ds.alloc activations offset 64 : !ds.buffer<tensor<8xf32>, [1], host>\n"
                  "ds.transfer %a to %h on to_host : !ds.buffer<tensor<8xf32>, [1], device>, "
                  "!ds.buffer<tensor<8xf32>, [1], host>\nreturn\n}\n}",
      said);
  ASSERT_TRUE(succeeded(program)) << said;
  EXPECT_EQ(program->stages[0].arenas.device, 4096u);
  EXPECT_EQ(program->stages[0].arenas.host, 128u);
  ASSERT_EQ(program->commands.size(), 1u);
  EXPECT_EQ(program->commands[0].kind, rt::CommandKind::Copy);
  EXPECT_EQ(program->streams.at(program->commands[0].stream), rt::StreamKind::ToHost);
  EXPECT_EQ(program->buffers.at(program->operands.at(0)).space, rt::Space::Device);
  EXPECT_EQ(program->buffers.at(program->operands.at(1)).space, rt::Space::Host);
}

TEST(Lower, StreamsHaveOneNameEach) {
  for (unsigned kind = 0; kind <= mlir::ds::getMaxEnumValForStreamKind(); ++kind)
    EXPECT_EQ(mlir::ds::stringifyStreamKind(static_cast<mlir::ds::StreamKind>(kind)),
              rt::spell(static_cast<rt::StreamKind>(kind)));
}

} // namespace
