//===- MemoryByPartTest.cpp - The parts of real plans add up to their peaks --------===//
//
// GPT, Llama and a multilayer perceptron, planned as ds-opt plans them, at each ZeRO stage, on one rank and
// two, in two precisions and for both targets. The sums are held to the program: its arena, its states, its
// inputs.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/Config.h"
#include "ds/Dialect/Machine.h"
#include "ds/Import/HfModel.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/TrainingFromConfig.h"
#include "ds/Planner/PlanModel.h"
#include "ds/Planner/PlanSummary.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
namespace dialect = mlir::ds;
namespace report = ::ds::report;
namespace rt = ::ds::rt;

static const char *kGpt =
    R"({"model_type": "gpt2", "vocab_size": 48, "n_positions": 16, "n_embd": 32, "n_layer": 2,
  "n_head": 2})";
static const char *kLlama = R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
  "intermediate_size": 48, "max_position_embeddings": 16, "num_attention_heads": 4, "num_hidden_layers": 2,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "vocab_size": 48})";
static const char *kMlp = R"mlir(
ds.state @body.0.weight role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<48x20xf32>
ds.state @body.0.bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<48xf32>
ds.state @body.2.weight role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<5x48xf32>
func.func @forward(%x: tensor<2x20xf32> {ds.input = "x"}, %y: tensor<2xi64> {ds.input = "y"},
                   %w0: tensor<48x20xf32> {ds.state = @body.0.weight}, %b0: tensor<48xf32> {ds.state = @body.0.bias},
                   %w2: tensor<5x48xf32> {ds.state = @body.2.weight}) -> tensor<f32> {
  %0 = ds.matmul %x, %w0 bias(%b0) transpose_rhs : tensor<2x20xf32>, tensor<48x20xf32>, tensor<48xf32> -> tensor<2x48xf32> loc("body.0")
  %1 = ds.tanh %0 : tensor<2x48xf32> loc("body.1")
  %2 = ds.matmul %1, %w2 transpose_rhs : tensor<2x48xf32>, tensor<5x48xf32> -> tensor<2x5xf32> loc("body.2")
  %loss, %lse, %count = ds.cross_entropy %2, %y ignore_index -100 : (tensor<2x5xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
  return %loss : tensor<f32>
}
)mlir";

namespace {
struct Case {
  const char *model;
  int stage;
  int64_t ranks;
  bool isBf16;
  const char *target;
  const char *offload = "";
};

class MemoryByPart : public testing::Test {
protected:
  MemoryByPart() { context.loadAllAvailableDialects(); }
  static DialectRegistry registry() {
    DialectRegistry all;
    all.insert<dialect::DsDialect, func::FuncDialect>();
    return all;
  }

  OwningOpRef<ModuleOp> read(const char *model);
  void plan(const Case &each);
  int64_t bytesOf(llvm::function_ref<bool(const std::string &)> isIt) const {
    int64_t bytes = 0;
    for (const report::MemoryLine &line : report.ranks[0].memory)
      bytes += isIt(line.name) && line.where == "device" ? line.bytes : 0;
    return bytes;
  }
  int64_t bytesOf(const std::string &name) const {
    return bytesOf([&](const std::string &other) { return other == name; });
  }
  void checkSums();
  void checkProgram();

  MLIRContext context{registry()};
  report::PlanReport report;
  rt::Program program;
};
} // namespace

OwningOpRef<ModuleOp> MemoryByPart::read(const char *model) {
  if (model == kMlp)
    return parseSourceString<ModuleOp>(model, &context);
  ::ds::HfRequest request{"config.json", {"input_ids=2x16xi64"}, 2};
  ::ds::Result<::ds::HfModel> built = ::ds::buildHfModelFromText(request, model, context);
  return built ? std::move(built->module) : nullptr;
}

void MemoryByPart::plan(const Case &each) {
  OwningOpRef<ModuleOp> module = read(each.model);
  ASSERT_TRUE(module);
  ::ds::config::ConfigSource source;
  source.text = R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": )" +
                std::to_string(each.model == kLlama ? 1 : 2) + R"(, "optimizer": {"type": "AdamW"},
    "bf16": {"enabled": )" +
                std::string(each.isBf16 ? "true" : "false") + R"(}, "zero_optimization": {"stage": )" +
                std::to_string(each.stage) + R"(, "stage3_param_persistence_threshold": 0)" + each.offload +
                "}}";
  source.ranks = each.ranks;
  ::ds::Result<::ds::config::Config> config = ::ds::config::readConfig(source);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(succeeded(dialect::setTraining(*module, dialect::trainingFromConfig(*config, {}))));
  ASSERT_TRUE(succeeded(dialect::setMachine(*module, {.target = each.target})));
  auto run = [](llvm::function_ref<void(OpPassManager &)> build, ModuleOp target) {
    PassManager manager(target.getContext());
    build(manager);
    return manager.run(target);
  };
  auto buildStep = [](OpPassManager &manager) { dialect::buildStepPipeline(manager, {}); };
  ASSERT_TRUE(succeeded(run(buildStep, *module)));
  ASSERT_TRUE(succeeded(dialect::planModel(*module, {}, run)));
  report = dialect::summarizePlan(*module, ::ds::cost::Rates());
  FailureOr<rt::Program> lowered = dialect::lowerToProgram(*module, {});
  ASSERT_TRUE(succeeded(lowered));
  program = std::move(*lowered);
}

/// Lines, categories and arena.
void MemoryByPart::checkSums() {
  const report::RankPlan &rank = report.ranks[0];
  EXPECT_EQ(bytesOf([](const std::string &) { return true; }), rank.peakBytes);
  EXPECT_EQ(rank.peakBytes, static_cast<int64_t>(program.stages[0].arenas.device));
  auto category = [&](report::Category which) { return rank.atPeak[static_cast<size_t>(which)]; };
  EXPECT_EQ(bytesOf("parameters"), category(report::Category::Parameters));
  EXPECT_EQ(bytesOf("accumulated gradients") + bytesOf("gradients"), category(report::Category::Gradients));
  EXPECT_EQ(bytesOf("master weights") + bytesOf("optimizer moments") + bytesOf("scalars of the step"),
            category(report::Category::Optimizer));
  EXPECT_EQ(bytesOf("gathered parameters") + bytesOf("communication buffers"),
            category(report::Category::Communication));
  EXPECT_EQ(bytesOf("workspace") + bytesOf("alignment and gaps"), category(report::Category::Workspace));
  int64_t activations = bytesOf([](const std::string &name) { return name.starts_with("activations "); });
  EXPECT_EQ(bytesOf("inputs") + activations + bytesOf("temporaries"),
            category(report::Category::Activations));
  for (const report::MemoryLine &line : rank.memory)
    EXPECT_FALSE(line.source.empty()) << line.name;
}

/// States and inputs, as the runtime will find them.
void MemoryByPart::checkProgram() {
  std::map<rt::Role, std::map<uint64_t, uint64_t>> places; // role -> offset in the arena -> bytes
  for (const rt::State &state : program.states) {
    const rt::Buffer &buffer = program.buffers[state.buffer];
    uint64_t &bytes = places[state.role][buffer.offset];
    bytes = std::max(bytes, rt::extentBytes(buffer));
  }
  auto sum = [&](rt::Role role) {
    int64_t bytes = 0;
    for (auto [offset, size] : places[role])
      bytes += static_cast<int64_t>(size);
    return bytes;
  };
  int64_t inputs = 0;
  for (const rt::Input &input : program.inputs)
    inputs += static_cast<int64_t>(rt::extentBytes(program.buffers[input.buffer]));
  EXPECT_EQ(bytesOf("inputs"), inputs);
  EXPECT_EQ(bytesOf("scalars of the step"), sum(rt::Role::Scalar));
  EXPECT_EQ(bytesOf("master weights") > 0, sum(rt::Role::Master) > 0);
  // Buckets have padding that no state of the program names.
  EXPECT_GE(bytesOf("parameters"), sum(rt::Role::Parameter));
  EXPECT_GE(bytesOf("optimizer moments"), sum(rt::Role::Moment));
  const report::StateBytes &kept = report.ranks[0].states;
  int64_t states = bytesOf("parameters") + bytesOf("accumulated gradients") + bytesOf("master weights") +
                   bytesOf("optimizer moments") + bytesOf("scalars of the step");
  int64_t named = kept.parameters + kept.gradients + kept.optimizer + kept.scalars;
  EXPECT_GE(states, named);
  EXPECT_LE(states, named + kept.padding); // which has the alignment of states as well
}

TEST_F(MemoryByPart, AddsUpToThePeakOfEveryPlan) {
  for (const char *model : {kGpt, kLlama, kMlp})
    for (int64_t ranks : {1, 2})
      for (int stage = 0; stage <= 3; ++stage)
        for (bool isBf16 : {false, true})
          for (const char *target : {"cpu", "cuda:sm_90"}) {
            SCOPED_TRACE(std::string(model == kMlp   ? "mlp"
                                     : model == kGpt ? "gpt"
                                                     : "llama") +
                         ", " + std::to_string(ranks) + " ranks, stage " + std::to_string(stage) +
                         (isBf16 ? ", bf16, " : ", fp32, ") + target);
            plan({model, stage, ranks, isBf16, target});
            if (HasFatalFailure())
              return;
            checkSums();
            checkProgram();
            if (model == kGpt) // smaller ones have their peak in the update
              EXPECT_GT(bytesOf([](const std::string &name) { return name.starts_with("activations "); }), 0);
          }
}

/// What is offloaded stands in lines of its own, which add up to the host's arena.
TEST_F(MemoryByPart, AddsUpToTheHostsArena) {
  for (const char *target : {"cpu", "cuda:sm_90"}) {
    SCOPED_TRACE(target);
    plan({kGpt, 2, 2, true, target, R"(, "offload_optimizer": {"device": "cpu"})"});
    if (HasFatalFailure())
      return;
    checkSums();
    const report::RankPlan &rank = report.ranks[0];
    std::map<std::string, int64_t> onHost; // by name
    int64_t sum = 0;
    for (const report::MemoryLine &line : rank.memory)
      if (line.where.starts_with("host")) {
        EXPECT_EQ(line.where, target == std::string("cpu") ? "host" : "host, page-locked");
        onHost[line.name] += line.bytes;
        sum += line.bytes;
      }
    EXPECT_GT(rank.hostArena, 0);
    EXPECT_EQ(sum, rank.hostArena);
    EXPECT_EQ(rank.hostArena, static_cast<int64_t>(program.stages[0].arenas.host));
    EXPECT_EQ(bytesOf("optimizer moments") + bytesOf("master weights"), 0); // none is on the device
    EXPECT_GE(onHost["optimizer moments"] + onHost["master weights"], rank.states.optimizer);
    // Buckets are known by their tensors.
    for (const report::LiveValue &value : rank.largest)
      EXPECT_FALSE(llvm::StringRef(value.name).starts_with("bucket_")) << value.name;
  }
}
