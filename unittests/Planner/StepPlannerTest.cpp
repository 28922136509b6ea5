//===- StepPlannerTest.cpp - How often a step is placed, and when it fits ---------------===//
#include "PlanBuffers.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Planner/PlanModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
namespace dialect = mlir::ds;

/// Four products in a row on two ranks, each of a weight that must be gathered twice, or kept.
static std::string makeModel() {
  std::string text =
      "module attributes {ds.training = #ds.training<zero_optimization = {stage = 3, "
      "stage3_param_persistence_threshold = 0}>} {\nds.mesh @mesh axes [dp = 2] samples dp zero dp\n";
  std::string arguments, body, input = "%x";
  for (std::string layer : {"0", "1", "2", "3"}) {
    text +=
        "ds.state @h." + layer +
        ".w role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<256x256xf32>\n";
    arguments += ", %w" + layer + ": tensor<256x256xf32> {ds.state = @h." + layer + ".w}";
    body += "%m" + layer + " = ds.matmul " + input + ", %w" + layer +
            " : tensor<32x256xf32>, tensor<256x256xf32> -> tensor<32x256xf32>\n%r" + layer + " = ds.tanh %m" +
            layer + " : tensor<32x256xf32>\n";
    input = "%r" + layer;
  }
  return text + "func.func @forward(%x: tensor<32x256xf32> {ds.input = \"x\"}" + arguments +
         ") -> tensor<f32> {\n" + body + "%l = ds.reduce sum " + input +
         " dims [0, 1] : tensor<32x256xf32> -> tensor<f32>\nreturn %l : tensor<f32>\n}\n}";
}

/// A product and its loss, which may be made in two pieces or four.
static const char *const kLossModel = R"(
module {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<64x4096xf32>
  func.func @forward(%x: tensor<2048x64xf32> {ds.input = "x"}, %t: tensor<2048xi64> {ds.input = "t"},
                     %w: tensor<64x4096xf32> {ds.state = @w}) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2048x64xf32>, tensor<64x4096xf32> -> tensor<2048x4096xf32>
    %loss, %lse, %count = ds.cross_entropy %y, %t ignore_index -100
        : (tensor<2048x4096xf32>, tensor<2048xi64>) -> (tensor<f32>, tensor<2048xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
})";

namespace {
class StepPlanner : public testing::Test {
protected:
  /// Plans a model within `memory` bytes, in the way of `form` if there is one, and counts pipelines.
  void plan(int64_t memory, const dialect::LeastForm *form = nullptr) { plan(makeModel(), memory, form, {}); }

  void plan(const std::string &model, int64_t memory, const dialect::LeastForm *form,
            const dialect::PipelineOptions &options) {
    context.loadDialect<dialect::DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(model, &context);
    ASSERT_TRUE(module);
    dialect::Machine machine;
    machine.memory.device = memory;
    ASSERT_TRUE(succeeded(setMachine(*module, machine)));
    plans = forms = 0;
    auto run = [&](llvm::function_ref<void(OpPassManager &)> build, ModuleOp target) {
      PassManager manager(&context);
      build(manager);
      LogicalResult done = manager.run(target);
      auto phase = target->getAttrOfType<dialect::PhaseAttr>(dialect::DsDialect::kPhaseAttr);
      plans += phase && phase.getValue() == dialect::Phase::Planned;
      forms += phase && phase.getValue() == dialect::Phase::Fused;
      return done;
    };
    ASSERT_TRUE(succeeded(form ? dialect::planLeast(*module, options, run, *form)
                               : dialect::planModel(*module, options, run)));
    dialect::ArenaOp device = dialect::ArenaOp::lookup(*module, dialect::Space::Device);
    arena = device ? int64_t(device.getBytes()) : 0;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  int plans = 0, forms = 0; ///< pipelines that end in phase planned, and in phase fused
  int64_t arena = 0;
};
} // namespace

/// With memory to spare gathered weights stay from forward to backward; what is needed is what the plan that
/// keeps none of them has live, less by the weight that is gathered ahead and the reduction that is under
/// way.
TEST_F(StepPlanner, NeedsWhatIsLiveWithNothingHeldByChoice) {
  plan(1 << 30);
  int64_t withChoice = arena, least = dialect::findLeastLive(*module);
  plan(1);
  EXPECT_LT(arena, withChoice);
  EXPECT_LE(least, arena);
  EXPECT_GT(least, arena - 2 * 256 * 256 * 4);
  EXPECT_NEAR(double(dialect::findLeastLive(*module)), double(least), 64); // scalars are kept or recomputed
}

/// One plan shows that no other of its buffers would fit.
TEST_F(StepPlanner, PlansOnceWhatIsOutOfReach) {
  plan(1);
  EXPECT_EQ(plans, 1);
}

/// A little below what is needed other plans are looked at.
TEST_F(StepPlanner, PlansAgainWhatMayFit) {
  plan(1);
  plan(dialect::findLeastLive(*module) - 64);
  EXPECT_GT(plans, 1);
}

/// Who asks only for a plan that fits is not made one that is far from it, and has what was chosen; near it
/// the plan is made.
TEST_F(StepPlanner, GivesUpWhatIsFarFromFitting) {
  plan(1);
  const int64_t least = arena;
  dialect::PipelineOptions options;
  options.givesUp = true;
  plan(makeModel(), least / 2, nullptr, options);
  EXPECT_EQ(plans, 0);
  EXPECT_EQ((*module)->getAttrOfType<dialect::PhaseAttr>(dialect::DsDialect::kPhaseAttr).getValue(),
            dialect::Phase::Resident);
  plan(makeModel(), least - 64, nullptr, options);
  EXPECT_GE(plans, 1);
}

/// However short memory is, a step is placed three times at most.
TEST_F(StepPlanner, PlansThreeTimesAtMost) {
  plan(1 << 30);
  const int64_t most = arena;
  for (int percent = 40; percent <= 100; percent += 2) {
    plan(most * percent / 100);
    EXPECT_LE(plans, 3) << percent;
  }
}

/// What is held by choice where there is memory is not held.
TEST_F(StepPlanner, HoldsLeastWhateverMemoryThereIs) {
  plan(1);
  const int64_t least = arena;
  dialect::LeastForm form;
  plan(1 << 30, &form);
  EXPECT_EQ(arena, least);
  EXPECT_EQ(plans, 1);
}

/// What least holds is expected of the step with its loss whole: no step is made in pieces for that.
TEST_F(StepPlanner, ExpectsPiecesWithoutMakingThem) {
  plan(kLossModel, 1 << 30, nullptr, {}); // counts what it makes; the module is read anew
  module = parseSourceString<ModuleOp>(kLossModel, &context);
  forms = 0;
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build, ModuleOp target) {
    PassManager manager(&context);
    build(manager);
    LogicalResult done = manager.run(target);
    forms += target->getAttrOfType<dialect::PhaseAttr>(dialect::DsDialect::kPhaseAttr).getValue() ==
             dialect::Phase::Fused;
    return done;
  };
  dialect::LeastForm form;
  ASSERT_TRUE(succeeded(dialect::expectLeast(*module, {}, run, form)));
  EXPECT_TRUE(form.lossRows);
  EXPECT_EQ(forms, 1);
}

/// Calls are recomputed of the groups that are asked for, and of none where none are; the plan says of which.
TEST_F(StepPlanner, RecomputesTheGroupsThatAreAskedFor) {
  dialect::LeastForm form;
  plan(1 << 30, &form);
  EXPECT_EQ(dialect::getDecisions(*module).residency->groupValues, std::nullopt);
  form.groups = dialect::RecomputedGroups(2);
  plan(1 << 30, &form);
  EXPECT_EQ(dialect::getDecisions(*module).residency->groupValues, 2);
}

/// A plan that holds as little as can be fits exactly where one does that holds what there is room for.
TEST_F(StepPlanner, FitsWhereverTheLeastDoes) {
  dialect::LeastForm form;
  plan(1 << 30, &form);
  const int64_t least = arena;
  for (int64_t memory : {least, least - 64}) {
    plan(memory);
    EXPECT_EQ(arena <= memory, memory == least) << memory;
  }
}

/// The plan tells what the loss in pieces would save, by a plan of those. What both are made of is made once:
/// the step with the whole loss and the one with pieces.
TEST_F(StepPlanner, MakesEachFormOnceForBothKindsOfLoss) {
  dialect::PipelineOptions options;
  options.comparesLosses = true;
  plan(kLossModel, 1 << 30, nullptr, options);
  const std::optional<dialect::LossSplit> split = dialect::getDecisions(*module).lossSplit;
  ASSERT_TRUE(split && split->outcome);
  EXPECT_FALSE(split->outcome->isExpected);
  EXPECT_GT(split->outcome->savedBytes, 1 << 23); // of 32 MiB of logits
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(forms, 2);
}
