//===- StepPlannerTest.cpp - How often a step is placed, and when it fits ---------------===//
#include "PlanBuffers.h"
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

namespace {
class StepPlanner : public testing::Test {
protected:
  /// Plans the model within `memory` bytes, in the way of `form` if there is one, and counts the pipelines
  /// that end in phase planned.
  void plan(int64_t memory, const dialect::LeastForm *form = nullptr) {
    context.loadDialect<dialect::DsDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(makeModel(), &context);
    ASSERT_TRUE(module);
    dialect::Machine machine;
    machine.memory.device = memory;
    ASSERT_TRUE(succeeded(setMachine(*module, machine)));
    const dialect::PipelineOptions options;
    plans = 0;
    auto run = [&](llvm::function_ref<void(OpPassManager &)> build, ModuleOp target) {
      PassManager manager(&context);
      build(manager);
      LogicalResult done = manager.run(target);
      auto phase = target->getAttrOfType<dialect::PhaseAttr>(dialect::DsDialect::kPhaseAttr);
      plans += phase && phase.getValue() == dialect::Phase::Planned;
      return done;
    };
    ASSERT_TRUE(succeeded(form ? dialect::planLeast(*module, options, run, *form)
                               : dialect::planModel(*module, options, run)));
    arena = dialect::ArenaOp::lookup(*module, dialect::Space::Device).getBytes();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  int plans = 0;
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
