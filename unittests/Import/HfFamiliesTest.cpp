//===- HfFamiliesTest.cpp - What the families of decoders make of their keys ------===//

#include "HfConfigs.h"
#include "ds/Dialect/Ds.h"
#include "ds/Import/BuiltinModels.h"
#include "ds/Import/HfModel.h"
#include "ds/Import/HfShape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

using namespace mlir::ds;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class HfFamilies : public testing::Test {
protected:
  HfFamilies() { context.loadDialect<DsDialect, mlir::func::FuncDialect>(); }

  /// A small configuration with sizes under Llama's names, and `keys` behind them.
  static std::string small(const std::string &type, const std::string &keys) {
    return R"({"model_type": ")" + type + R"(", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
      "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 16)" +
           (keys.empty() ? "" : ", " + keys) + "}";
  }

  /// What refuses the configuration, or "accepted".
  std::string build(const std::string &text, const std::string &shape = "1x16") {
    auto result =
        ds::buildHfModelFromText({"config.json", {"input_ids=" + shape + "xi64"}, 1}, text, context);
    if (!result)
      return result.error().message;
    model = std::move(*result);
    return "accepted";
  }
  std::string refusal(const std::string &type, const std::string &keys) { return build(small(type, keys)); }

  /// Layers whose attention has a window.
  int64_t windows() {
    int64_t count = 0;
    model.module->walk([&](AttentionOp op) { count += op.getWindow() ? 1 : 0; });
    return count;
  }

  mlir::MLIRContext context;
  ds::HfModel model;
};

/// Plans by rules count what a program would hold.
TEST_F(HfFamilies, RulesCountTheParametersOfEveryDecoder) {
  for (const auto &[name, elements, active] : ds::test::kPublished) {
    if (name.starts_with("bert") || name.starts_with("whisper") || active > 0)
      continue;
    ASSERT_EQ(build(std::string(ds::builtinModelText(name))), "accepted") << name;
    int64_t count = 0;
    for (StateOp state : model.module->getOps<StateOp>())
      count += state.getRole() == Role::Parameter ? state.getTensorType().getNumElements() : 0;
    auto shape = ds::readHfShape({std::string(name), {"input_ids=1x16xi64"}, 1});
    ASSERT_TRUE(shape) << name << ": " << shape.error().message;
    EXPECT_EQ(shape->shape.parameters(), count) << name;
  }
}

/// Rules count all experts and those that a token meets; no program is made of them.
TEST_F(HfFamilies, ExpertsAreCountedAndRefusedAsPrograms) {
  for (const auto &[name, elements, active] : ds::test::kPublished) {
    if (active == 0)
      continue;
    auto shape = ds::readHfShape({std::string(name), {"input_ids=1x16xi64"}, 1});
    ASSERT_TRUE(shape) << name << ": " << shape.error().message;
    EXPECT_EQ(shape->shape.parameters(), elements) << name;
    EXPECT_NEAR(shape->shape.activeParameters(), active, 64) << name; // a mean of layers, rounded
    EXPECT_EQ(shape->whyNoProgram, "programs have no experts yet");
    EXPECT_THAT(shape->notices.back().text, HasSubstr("parameters are active for a token")) << name;
    EXPECT_EQ(build(std::string(ds::builtinModelText(name))),
              "config.json: model_type: programs have no experts yet")
        << name;
  }
  auto deepseek = ds::readHfShape({"deepseek-v3", {"input_ids=1x16xi64"}, 1});
  EXPECT_EQ(deepseek->shape.ffn, 18432);       // 3 layers of that width, 58 of 8 + 1 experts of 2048
  EXPECT_EQ(deepseek->shape.headWidth(), 160); // 192 for scores, 128 for values
}

/// Llama 4 Scout: the text model of a configuration that has pictures besides.
TEST_F(HfFamilies, TheTextOfLlama4IsCounted) {
  const std::string path = testing::TempDir() + "/llama4.json";
  std::ofstream(path) << R"({"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4",
    "vision_config": {}, "text_config": {"attention_bias": false, "attention_chunk_size": 8192, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 5120, "interleave_moe_layer_step": 1, "intermediate_size": 8192,
    "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760, "no_rope_layers": [],
    "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
    "num_local_experts": 16, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"factor": 16.0,
    "high_freq_factor": 1.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
    "rope_type": "llama3"}, "use_qk_norm": true, "vocab_size": 202048}})";
  auto shape = ds::readHfShape({path, {"input_ids=1x8192xi64"}, 1});
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->shape.parameters(), 107'769'861'120);
  EXPECT_EQ(shape->shape.activeParameters(), 17'172'894'720);
  EXPECT_EQ(shape->shape.windowLayers, 36); // every fourth of 48 sees all
  EXPECT_THAT(refusal("llama4", ""), HasSubstr("text_config: expects the configuration of the text model"));
}

/// Experts that are not in every layer.
TEST_F(HfFamilies, LayersWithoutExpertsCountAsTheyAre) {
  const std::string keys = R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24)";
  auto count = [&](const std::string &more) {
    EXPECT_THAT(refusal("qwen3_moe", keys + more), HasSubstr("no experts yet")) << more;
    const std::string path = testing::TempDir() + "/qwen3-moe.json";
    std::ofstream(path) << small("qwen3_moe", keys + more);
    auto shape = ds::readHfShape({path, {"input_ids=1x16xi64"}, 1});
    EXPECT_TRUE(shape) << shape.error().message;
    return shape->shape.parameters();
  };
  const int64_t all = count(""), half = count(R"(, "decoder_sparse_step": 2)");
  // Router and four experts of 24, or a feed-forward of 48.
  const int64_t sparse = 4 * 32 + 4 * 3 * 24 * 32, dense = 3 * 48 * 32;
  EXPECT_EQ(all - half, 2 * (sparse - dense));
  EXPECT_EQ(all - count(R"(, "mlp_only_layers": [0, 3, 1])"), 3 * (sparse - dense));
  EXPECT_THAT(
      refusal("qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 5, "moe_intermediate_size": 24)"),
      HasSubstr("num_experts_per_tok: expects at most the 4 experts of a layer, but got 5"));
}

TEST_F(HfFamilies, HeadsNeedNotFillTheWidthForPlansByRules) {
  auto shape = ds::readHfShape({"qwen3-0.6b", {"input_ids=1x16xi64"}, 1});
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->shape.headWidth(), 128);
  EXPECT_EQ(shape->shape.queryWidth(), 2048); // of a width of 1024
  EXPECT_EQ(shape->shape.kvWidth(), 1024);
  auto gemma = ds::readHfShape({"gemma-2-2b", {"input_ids=1x8192xi64"}, 1});
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(gemma->shape.window, 4096);
  EXPECT_EQ(gemma->shape.windowLayers, 13); // every other of 26
}

TEST_F(HfFamilies, WindowsThatContradictThemselvesAreRefusedByKey) {
  const std::string types = R"("layer_types": ["sliding_attention", "full_attention", "full_attention",
    "full_attention"])";
  EXPECT_THAT(
      refusal("qwen3", R"("head_dim": 8, "use_sliding_window": false, "sliding_window": 4, )" + types),
      HasSubstr("layer_types: layer 0 has sliding_attention, but use_sliding_window is false"));
  EXPECT_THAT(refusal("qwen2", R"("use_sliding_window": true, "sliding_window": null, )" + types),
              HasSubstr("layer_types: layer 0 has sliding_attention, but sliding_window says no window"));
  EXPECT_THAT(
      refusal("qwen2",
              R"("use_sliding_window": true, "sliding_window": 4, "max_window_layers": 2, )" + types),
      HasSubstr("layer_types: layer 0 has sliding_attention, but by max_window_layers, the number 2, it "
                "has the other"));
  EXPECT_THAT(refusal("gemma3_text", R"("head_dim": 8, "sliding_window_pattern": 2, )" + types),
              HasSubstr("layer_types: layer 2 has full_attention, but by sliding_window_pattern"));
  EXPECT_THAT(refusal("gemma2", R"("layer_types": ["chunked_attention", "", "", ""])"),
              HasSubstr("expects full_attention or sliding_attention, but got 'chunked_attention'"));
  EXPECT_EQ(refusal("qwen2", R"("use_sliding_window": true, "sliding_window": 4, )" + types), "accepted");
  EXPECT_EQ(windows(), 1);
}

TEST_F(HfFamilies, EveryOtherLayerOfGemma2HasAWindow) {
  EXPECT_EQ(refusal("gemma2", R"("head_dim": 8, "attn_logit_softcapping": null, "sliding_window": 4)"),
            "accepted");
  EXPECT_EQ(windows(), 2);
}

TEST_F(HfFamilies, GptNeoSaysTheKindOfEachLayer) {
  const std::string sizes = R"({"model_type": "gpt_neo", "vocab_size": 64, "hidden_size": 32, "num_layers": 2,
    "num_heads": 4, "max_position_embeddings": 16, "window_size": 4, )";
  EXPECT_EQ(build(sizes + R"("attention_types": [[["global", "local"], 1]]})"), "accepted");
  EXPECT_EQ(windows(), 1);
  EXPECT_THAT(build(sizes + R"("attention_types": [[["global"], 3]]})"),
              HasSubstr("attention_types: expects one entry for each of 2 layers, but got 3"));
  EXPECT_THAT(build(sizes + R"("attention_types": [["global", 2]]})"),
              HasSubstr("expects a list of pairs of a list of texts and how often it is repeated"));
  EXPECT_THAT(build(sizes + R"("attention_types": [[["global", "near"], 1]]})"),
              HasSubstr("expects global or local, but got 'near'"));
  EXPECT_THAT(
      build(sizes + R"("attention_types": [[["global"], 2]], "attention_layers": ["local", "local"]})"),
      HasSubstr("attention_layers: contradicts attention_types"));
}

TEST_F(HfFamilies, WhatAFamilyDoesNotHaveIsRefusedByKey) {
  EXPECT_THAT(refusal("olmo", R"("clip_qkv": 8.0)"),
              HasSubstr("clip_qkv: expects null, but got the number 8.0"));
  EXPECT_THAT(refusal("gemma", R"("head_dim": 8, "use_bidirectional_attention": true)"),
              HasSubstr("use_bidirectional_attention: expects false"));
  EXPECT_THAT(
      refusal("opt", R"("ffn_dim": 48, "layerdrop": 0.1)"),
      HasSubstr("layerdrop: expects 0.0, but got the number 0.1: all layers take part in every step"));
  EXPECT_THAT(refusal("bloom", R"("n_layer": 4, "n_head": 4,
                                   "apply_residual_connection_post_layernorm": true)"),
              HasSubstr("apply_residual_connection_post_layernorm: expects false"));
  EXPECT_THAT(refusal("smollm3", R"("no_rope_layers": [1, 0])"),
              HasSubstr("no_rope_layers: expects one entry for each of 4 layers, but got 2"));
  EXPECT_THAT(
      refusal("gptj", R"("n_positions": 16, "n_embd": 32, "n_layer": 4, "n_head": 4, "rotary_dim": 16)"),
      HasSubstr("rotary_dim: expects an even number of at most the 8 elements of a head, but got 16"));
  EXPECT_THAT(refusal("phi3", R"("sliding_window": 0)"),
              HasSubstr("sliding_window: expects an integer from 1"));
}

/// Every family builds one head, and says which where another is asked for.
TEST_F(HfFamilies, OtherHeadsAreRefusedWithTheOneThatIsBuilt) {
  EXPECT_THAT(refusal("qwen3", R"("head_dim": 8, "architectures": ["Qwen3ForSequenceClassification"])"),
              HasSubstr("architectures: expects Qwen3ForCausalLM, which is the model that would be built"));
  EXPECT_THAT(refusal("gemma2", R"("architectures": ["Gemma2ForTokenClassification"])"),
              HasSubstr("expects Gemma2ForCausalLM"));
  EXPECT_EQ(refusal("gemma3_text", R"("head_dim": 8, "architectures": ["Gemma3ForCausalLM"])"), "accepted");
  EXPECT_THAT(refusal("phi3", R"("quantization_config": {"bits": 4})"),
              HasSubstr("parameters are quantised"));
}

/// Samples longer than the model once had have frequencies of their own.
TEST_F(HfFamilies, LongropeFollowsTheLengthOfSamples) {
  const std::string keys = R"("original_max_position_embeddings": 8, "rope_scaling": {"type": "longrope",
    "short_factor": [1, 1, 1, 1], "long_factor": [2, 2, 2, 2]})";
  auto angle = [&](const char *shape) {
    EXPECT_EQ(build(small("phi3", keys), shape), "accepted");
    double found = 0;
    model.module->walk([&](ConstantOp op) { // cosines, [T, 8]
      auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(op.getValue());
      if (found == 0 && elements && elements.getType().getRank() == 2)
        found = (*(elements.value_begin<llvm::APFloat>() + 8)).convertToDouble();
    });
    return found;
  };
  const double factor = std::sqrt(1 + std::log(2) / std::log(8)); // 16 positions in place of 8
  EXPECT_NEAR(angle("1x8"), std::cos(1.0) * factor, 1e-6);
  EXPECT_NEAR(angle("1x16"), std::cos(0.5) * factor, 1e-6);
}

} // namespace
