//===- ShardStatesTest.cpp - ZeRO's formulas, to the byte -------------------------===//
//
// A mixed-precision Adam step with 16-bit gradients that are kept to the update, as ZeRO's paper counts it
// (arXiv 1910.02054): 2 + 2 bytes per parameter in 16 bits, 4 + 4 + 4 for the master and two moments.
//
//===---------------------------------------------------------------------------===//
#include "CountStates.h"
#include "ds/Passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::ds;

namespace {

/// A parameter of `size` elements with what AdamW keeps of it.
std::string declareStates(const std::string &name, const std::string &size) {
  const std::string zero = "init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<" + size;
  std::string text = "ds.state @" + name + " role(parameter) trainable " + zero + "xbf16>\n";
  for (const char *suffix : {"master", "exp_avg", "exp_avg_sq"})
    text += "ds.state @" + name + "." + suffix + (suffix[0] == 'm' ? " role(master)" : " role(moment)") +
            " slot(\"" + suffix + "\") owner(@" + name + ") " + zero + "xf32>\n";
  return text + "ds.state @" + name + ".grad role(gradient) slot(\"grad\") owner(@" + name + ") " + zero +
         "xbf16>\n";
}

/// A step of one parameter of `elements` elements per layer.
std::string makeStep(int64_t layers, int64_t elements, int64_t ranks, int stage) {
  std::string size = std::to_string(elements), text, arguments, results, types, body, values;
  text = "module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, "
         "zero_optimization = {stage = " +
         std::to_string(stage) +
         ", stage3_param_persistence_threshold = 0}>} {\n"
         "ds.mesh @mesh axes [dp = " +
         std::to_string(ranks) + "] samples dp zero dp\n";
  std::string first, firstTypes, firstValues;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::string name = "h." + std::to_string(layer) + ".w", id = std::to_string(layer),
                low = "tensor<" + size + "xbf16>", full = "tensor<" + size + "xf32>";
    text += declareStates(name, size);
    auto argument = [&](const std::string &value, const std::string &type, const std::string &state) {
      arguments += ", %" + value + id + ": " + type + " {ds.state = @" + state + "}";
    };
    argument("p", low, name);
    first += ", %p" + id + ": " + low + " {ds.state = @" + name + "}";
    argument("w", full, name + ".master");
    argument("m", full, name + ".exp_avg");
    argument("v", full, name + ".exp_avg_sq");
    argument("a", low, name + ".grad");
    auto result = [&](std::string &list, const std::string &type, const std::string &state) {
      list += ", " + type + " {ds.state = @" + state + "}";
    };
    result(results, full, name + ".master");
    result(results, low, name);
    result(results, full, name + ".exp_avg");
    result(results, full, name + ".exp_avg_sq");
    result(firstTypes, low, name + ".grad");
    const std::string product =
        "%g" + id + " = ds.mul %p" + id + ", %p" + id + " {ds.work = #ds.work<backward>} : " + low + "\n";
    body += product + "%s" + id + " = ds.accumulate %g" + id + " into %a" + id +
            " {ds.work = #ds.work<backward>} : (" + low + ", " + low + ") -> " + low + "\n%u" + id +
            ":4 = ds.update @" + name + " states(%w" + id + ", %m" + id + ", %v" + id + ") gradient(%s" + id +
            ") {ds.work = #ds.work<update>} : (" + full + ", " + full + ", " + full + ", " + low + ") -> (" +
            full + ", " + low + ", " + full + ", " + full + ") {\n^bb0(%w: " + full + ", %m: " + full +
            ", %v: " + full + ", %g: " + low + "):\n%f = ds.convert %g : " + low + " -> " + full +
            "\n%n = ds.sub %w, %f : " + full + "\n%c = ds.convert %n : " + full + " -> " + low +
            "\nds.yield %n, %c, %m, %v : " + full + ", " + low + ", " + full + ", " + full + "\n}\n";
    values += ", %u" + id + "#0, %u" + id + "#1, %u" + id + "#2, %u" + id + "#3";
    types += ", " + full + ", " + low + ", " + full + ", " + full;
    firstValues += product;
  }
  std::string returned, returnedTypes;
  for (int64_t layer = 0; layer < layers; ++layer) {
    returned += ", %g" + std::to_string(layer);
    returnedTypes += ", tensor<" + size + "xbf16>";
  }
  text += "func.func @first(" + first.substr(2) + ") -> (" + firstTypes.substr(2) +
          ") attributes {ds.segment = #ds.segment<forward, backward>} {\n" + firstValues + "return " +
          returned.substr(2) + " : " + returnedTypes.substr(2) + "\n}\n";
  text += "func.func @last(" + arguments.substr(2) + ") -> (" + results.substr(2) +
          ") attributes {ds.segment = #ds.segment<forward, backward, update>} {\n" + body + "return " +
          values.substr(2) + " : " + types.substr(2) +
          "\n}\nds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, "
          "#ds.run<@last, first 1, count 1, gradients add>]\n}\n";
  return text;
}

/// What a rank keeps of the step above.
::ds::report::StateBytes shard(int64_t layers, int64_t elements, int64_t ranks, int stage) {
  MLIRContext context;
  context.loadDialect<DsDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(makeStep(layers, elements, ranks, stage), &context);
  EXPECT_TRUE(module);
  PassManager manager(&context);
  manager.addPass(createShardZero());
  manager.addPass(createDecompose());
  manager.addPass(createVerifySharded());
  EXPECT_TRUE(module && succeeded(manager.run(*module)));
  return module ? countStateBytes(*module, 64) : ::ds::report::StateBytes();
}

/// The formula of the paper for `parameters` parameters.
void expectFormula(const ::ds::report::StateBytes &bytes, int64_t parameters, int64_t ranks, int stage) {
  EXPECT_EQ(bytes.parameters, 2 * parameters / (stage == 3 ? ranks : 1));
  EXPECT_EQ(bytes.gradients, 2 * parameters / (stage >= 2 ? ranks : 1));
  EXPECT_EQ(bytes.optimizer, 12 * parameters / (stage >= 1 ? ranks : 1));
  int64_t total = bytes.parameters + bytes.gradients + bytes.optimizer;
  int64_t formula[] = {16 * parameters, 4 * parameters + 12 * parameters / ranks,
                       2 * parameters + 14 * parameters / ranks, 16 * parameters / ranks};
  EXPECT_EQ(total, formula[stage]);
}

TEST(ShardStates, AreTheFormulasOfZero) {
  for (int stage = 0; stage <= 3; ++stage)
    for (int64_t ranks : {1, 2, 3, 4, 7, 16, 64, 256, 1024}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + ", " + std::to_string(ranks) + " ranks");
      int64_t elements = 32 * 1024 * 3 * 7; // what 32 * ranks divides: no padding
      ::ds::report::StateBytes bytes = shard(2, elements, ranks, stage);
      expectFormula(bytes, 2 * elements, ranks, stage);
      EXPECT_EQ(bytes.padding, 0);
    }
}

TEST(ShardStates, ListPaddingApart) {
  // 2 layers of 1000 elements on 4 ranks: buckets of 1024, parts of 256.
  for (int stage = 0; stage <= 3; ++stage) {
    SCOPED_TRACE(stage);
    ::ds::report::StateBytes bytes = shard(2, 1000, 4, stage);
    expectFormula(bytes, 2000, 4, stage);
    int64_t parts[] = {16, 4 + 12 / 4, 2 + 14 / 4, 16 / 4};
    int64_t memory = stage == 2 ? 2 * 1024 * 2 + 14 * 2 * 256 : parts[stage] * 2 * 1024;
    EXPECT_EQ(bytes.padding, memory - bytes.parameters - bytes.gradients - bytes.optimizer);
  }
}

TEST(ShardStates, AreTable1OfThePaper) {
  // 7.5e9 parameters in GB of 1e9 bytes, from the formulas that the tests above hold to the IR.
  struct Row {
    int64_t ranks;
    double gigabytes[3];
  };
  for (const Row &row :
       {Row{1, {120, 120, 120}}, Row{4, {52.5, 41.3, 30}}, Row{16, {35.6, 21.6, 7.5}},
        Row{64, {31.4, 16.6, 1.88}}, Row{256, {30.4, 15.4, 0.47}}, Row{1024, {30.1, 15.1, 0.12}}})
    for (int stage = 1; stage <= 3; ++stage) {
      // A thousandth of the size; parts are the same.
      int64_t elements = 7500000 / (32 * 1024) * (32 * 1024);
      ::ds::report::StateBytes bytes = shard(1, elements, row.ranks, stage);
      double total = double(bytes.parameters + bytes.gradients + bytes.optimizer) / elements * 7.5;
      EXPECT_NEAR(total, row.gigabytes[stage - 1], 0.05 + row.gigabytes[stage - 1] * 1e-3)
          << row.ranks << " ranks, stage " << stage;
    }
}

} // namespace
