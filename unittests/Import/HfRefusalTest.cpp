//===- HfRefusalTest.cpp - What config.json may not say -------------------------===//

#include "ds/Dialect/Ds.h"
#include "ds/Import/HfModel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using testing::AllOf;
using testing::HasSubstr;

namespace {

constexpr const char *kTinyGpt2 = R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 32,
  "n_layer": 2, "n_head": 4})";
constexpr const char *kTinyLlama = R"({"model_type": "llama", "vocab_size": 64, "hidden_size": 32,
  "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16})";

/// `text` with the value of `key` replaced, added, or (for an empty value) removed.
std::string with(const std::string &text, const std::string &key, const std::string &value) {
  std::string result = text;
  size_t at = result.find("\"" + key + "\":");
  if (at != std::string::npos) {
    size_t end = result.find_first_of(",}", at);
    result.erase(at, result[end] == ',' ? end + 1 - at : end - at);
  }
  if (!value.empty())
    result.insert(1, "\"" + key + "\": " + value + ", ");
  return result;
}

/// The whole message and hint that refuse `text`, after the exit code where it is not 3.
std::string refusal(const std::string &text, std::vector<std::string> inputs = {}, int64_t batch = 1) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::ds::DsDialect, mlir::func::FuncDialect>();
  auto result = ds::buildHfModelFromText({"config.json", std::move(inputs), batch}, text, context);
  if (result)
    return "accepted";
  const ds::Error &error = result.error();
  std::string code = error.code == ds::ExitCode::Invalid ? "" : std::to_string(int(error.code)) + ": ";
  return code + error.message + (error.hint.empty() ? "" : "; " + error.hint);
}

std::string gpt2(const std::string &key, const std::string &value) {
  return refusal(with(kTinyGpt2, key, value));
}
std::string llama(const std::string &key, const std::string &value) {
  return refusal(with(kTinyLlama, key, value));
}

TEST(HfRefusal, TheBasesAreAccepted) {
  EXPECT_EQ(refusal(kTinyGpt2), "accepted");
  EXPECT_EQ(refusal(kTinyLlama), "accepted");
}

TEST(HfRefusal, UnknownModelsAreNamedWithTheKnownOnes) {
  EXPECT_THAT(gpt2("model_type", "\"rwkv\""),
              testing::MatchesRegex(
                  "config.json:1:2 .byte 1.: model_type: expects one of bert, bloom, .*, vit, "
                  "whisper, xlm-roberta, but got the string \"rwkv\"; the nearest are gpt2 .knows all "
                  "keys. and gpt_bigcode .knows all keys.; "
                  "export the model as TorchScript and give the .pt file"));
  EXPECT_THAT(refusal(with(with(kTinyLlama, "model_type", "\"llama9\""), "router", "8")),
              HasSubstr("the nearest are llama (does not know router) and gemma (does not know router); "));
  EXPECT_THAT(refusal(with(with(kTinyLlama, "model_type", "\"dbrx\""), "num_experts", "8")),
              HasSubstr("models with experts are not read yet, neither from config.json nor as TorchScript"));
  EXPECT_THAT(gpt2("model_type", ""), HasSubstr("vit, whisper, xlm-roberta, but the key is missing"));
  EXPECT_THAT(gpt2("model_type", "7"), HasSubstr("model_type: expects a text, but got the number 7"));
}

TEST(HfRefusal, ModelsAroundATextModelNameItAsWhatIsRead) {
  const auto around = [](const std::string &type, const std::string &text) {
    return refusal(R"({"model_type": ")" + type + R"(", "vision_config": {}, "text_config": )" + text + "}");
  };
  EXPECT_EQ(
      around("mistral3", with(with(kTinyLlama, "model_type", "\"mistral\""), "num_key_value_heads", "2")),
      "config.json:1:2 (byte 1): model_type: expects a model of text alone, but got the string "
      "\"mistral3\", which "
      "has one in text_config; write the value of text_config to a config.json of its own, which is "
      "read as mistral");
  EXPECT_THAT(around("gemma3", with(with(kTinyLlama, "model_type", "\"gemma3_text\""), "vocab_size", "")),
              AllOf(HasSubstr("\"gemma3\", which has one in text_config; write the value"),
                    HasSubstr("read as gemma3_text, once this is put right there: vocab_size: expects an "
                              "integer from 1 to 16777216, but the key is missing")));
  EXPECT_THAT(
      around("llava", R"({"model_type": "rwkv"})"),
      HasSubstr("which has one in text_config, of a model_type that is not read either: 'rwkv'; export"));
  EXPECT_THAT(around("llava", "3"), HasSubstr("expects one of bert, "));
}

TEST(HfRefusal, MissingKeysAreNamedWithTheNearest) {
  EXPECT_EQ(gpt2("n_head", ""),
            "config.json: n_head: expects an integer from 1 to 65536, but the key is missing");
  std::string misspelt = with(with(kTinyLlama, "num_hidden_layers", ""), "num_hidden_layer", "2");
  EXPECT_THAT(refusal(misspelt),
              HasSubstr("num_hidden_layers: expects an integer from 1 to 4096, but the key is "
                        "missing; rename 'num_hidden_layer' to 'num_hidden_layers'"));
}

TEST(HfRefusal, NearlyKnownKeysAreNotPassedOver) {
  EXPECT_EQ(llama("num_key_value_head", "2"),
            "config.json:1:2 (byte 1): num_key_value_head: unknown key; rename it to 'num_key_value_heads'");
  EXPECT_THAT(llama("rope_thetas", "1e5"), HasSubstr("rename it to 'rope_theta'"));
  EXPECT_EQ(llama("something_else", "2"), "accepted");
}

TEST(HfRefusal, WrongTypesAndValuesSayLimitAndValue) {
  EXPECT_EQ(gpt2("n_embd", "\"32\""),
            "config.json:1:2 (byte 1): n_embd: expects an integer from 1 to 1048576, but "
            "got the string \"32\"");
  EXPECT_THAT(gpt2("n_embd", "32.5"), HasSubstr("but got the number 32.5"));
  EXPECT_THAT(gpt2("n_layer", "0"),
              HasSubstr("n_layer: expects an integer from 1 to 4096, but got the number 0"));
  EXPECT_THAT(gpt2("n_layer", "-3"), HasSubstr("but got the number -3"));
  EXPECT_THAT(gpt2("vocab_size", "1e12"), HasSubstr("from 1 to 16777216, but got the number 1e12"));
  EXPECT_THAT(gpt2("vocab_size", "[64]"), HasSubstr("but got a list of 1"));
  EXPECT_THAT(gpt2("attn_pdrop", "1.5"), HasSubstr("attn_pdrop: expects a number from 0.0 to 0.999"));
  EXPECT_THAT(gpt2("scale_attn_weights", "1"), HasSubstr("expects true or false, but got the number 1"));
  EXPECT_THAT(gpt2("activation_function", "\"gelu_old\""),
              AllOf(HasSubstr("activation_function: expects one of gelu, "), HasSubstr("\"gelu_old\"")));
  EXPECT_THAT(llama("rope_scaling", "3"), HasSubstr("rope_scaling: expects an object, but got the number 3"));
  EXPECT_THAT(refusal("[]"), HasSubstr("config.json: expects an object, but got a list of 0"));
  EXPECT_THAT(refusal("{\"model_type\": \"gpt2\", \"model_type\": \"llama\"}"), HasSubstr("duplicate key"));
}

TEST(HfRefusal, HeadsMustDivide) {
  EXPECT_EQ(gpt2("n_head", "5"),
            "config.json:1:2 (byte 1): n_head: expects a divisor of n_embd, which is 32, but got 5");
  EXPECT_THAT(llama("num_attention_heads", "3"), HasSubstr("expects a divisor of hidden_size, which is 32"));
  EXPECT_THAT(
      llama("num_key_value_heads", "3"),
      HasSubstr("num_key_value_heads: expects a divisor of num_attention_heads, which is 4, but got 3"));
  EXPECT_THAT(llama("head_dim", "7"), HasSubstr("expects an even number of rotated elements"));
}

TEST(HfRefusal, ContradictionsAreRefused) {
  EXPECT_THAT(gpt2("hidden_size", "64"),
              HasSubstr("contradicts n_embd, which is another name of it: the number 64 "
                        "against the number 32"));
  EXPECT_EQ(gpt2("hidden_size", "32"), "accepted");
  std::string both = with(kTinyLlama, "rope_theta", "1e4");
  EXPECT_THAT(refusal(with(both, "rope_parameters", R"({"rope_theta": 5e4})")),
              HasSubstr("rope_theta: contradicts the rope_theta of rope_parameters, the number 5e4"));
  both = with(kTinyLlama, "rope_parameters", R"({"rope_theta": 5e4})");
  EXPECT_THAT(refusal(with(both, "rope_scaling", R"({"type": "linear"})")),
              HasSubstr("rope_scaling: contradicts rope_parameters"));
}

TEST(HfRefusal, RopeIsScaledAsKnownOrNotAtAll) {
  EXPECT_THAT(
      llama("rope_scaling", R"({"type": "ntk", "factor": 4.0})"),
      HasSubstr(
          "rope_scaling.type: expects one of default, linear, dynamic, llama3, yarn, longrope, but got the "
          "string \"ntk\""));
  EXPECT_THAT(llama("rope_scaling", R"({"type": "yarn"})"),
              HasSubstr("rope_scaling.factor: expects a number"));
  EXPECT_THAT(
      llama("rope_scaling", R"({"type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1]})"),
      HasSubstr("rope_scaling.long_factor: expects one factor for each of 4 frequencies, but got 1"));
  EXPECT_THAT(
      llama("rope_scaling", R"({"type": "longrope", "short_factor": [1, 1, 1, "a"]})"),
      HasSubstr("rope_scaling.short_factor: expects a list whose every entry is a number from 1e-06"));
  EXPECT_THAT(llama("rope_scaling", R"({"type": "linear"})"),
              HasSubstr("rope_scaling.factor: expects a number from 1e-06 to 1e+06, but the key is missing"));
  EXPECT_THAT(llama("rope_scaling", R"({"factor": 2.0})"),
              HasSubstr("rope_scaling.rope_type: expects one of"));
  EXPECT_THAT(llama("rope_scaling", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 5,
                                        "high_freq_factor": 4})"),
              HasSubstr("rope_scaling.low_freq_factor: expects at most high_freq_factor"));
  EXPECT_THAT(llama("partial_rotary_factor", "0.5"), HasSubstr("expects 1 for this model_type"));
}

TEST(HfRefusal, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(gpt2("add_cross_attention", "true"), HasSubstr("add_cross_attention: expects false"));
  const char *bert = R"({"model_type": "bert", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 16})";
  EXPECT_EQ(refusal(bert), "accepted");
  EXPECT_THAT(refusal(with(bert, "is_decoder", "true")), HasSubstr("is_decoder: expects false"));
  EXPECT_THAT(refusal(with(bert, "position_embedding_type", "\"relative_key\"")),
              HasSubstr("position_embedding_type: expects absolute, but got the string \"relative_key\""));
  std::string qwen =
      with(with(kTinyLlama, "model_type", "\"qwen2\""), "layer_types", R"(["full_attention"])");
  EXPECT_THAT(refusal(qwen), HasSubstr("layer_types: expects one entry for each of 2 layers, but got 1"));
}

/// Another model than the one that would be built, which the message names.
TEST(HfRefusal, OtherHeadsAreNotPassedOver) {
  EXPECT_EQ(
      llama("architectures", R"(["LlamaForTokenClassification"])"),
      "config.json:1:2 (byte 1): architectures: expects LlamaForCausalLM, which is the model that would be "
      "built, but got LlamaForTokenClassification; export the model as TorchScript and give the .pt file");
  EXPECT_THAT(gpt2("architectures", R"(["GPT2DoubleHeadsModel"])"), HasSubstr("expects GPT2LMHeadModel"));
  EXPECT_THAT(gpt2("architectures", R"(["LlamaForCausalLM"])"), HasSubstr("but got LlamaForCausalLM"));
  EXPECT_THAT(llama("architectures", R"("LlamaForCausalLM")"), HasSubstr("expects a list of texts"));
  for (const char *same :
       {R"(["LlamaForCausalLM"])", R"(["LLaMAForCausalLM"])", R"(["LlamaModel"])", "[]", "null"})
    EXPECT_EQ(llama("architectures", same), "accepted") << same;
}

TEST(HfRefusal, QuantisedModelsAreNotPassedOver) {
  EXPECT_EQ(llama("quantization_config", R"({"quant_method": "gptq", "bits": 4})"),
            "config.json:1:2 (byte 1): quantization_config: the model's parameters are quantised, but "
            "LlamaForCausalLM would be built with all of them in floating point; give the config.json of the "
            "model that was quantised");
  EXPECT_THAT(gpt2("quantization", R"({"bits": 4})"), HasSubstr("GPT2LMHeadModel would be built"));
  EXPECT_THAT(gpt2("compression_config", "{}"), HasSubstr("quantised"));
  EXPECT_EQ(llama("quantization_config", "null"), "accepted");
  EXPECT_THAT(gpt2("pruned_heads", R"({"1": [0, 2]})"), HasSubstr("pruned_heads: expects no heads"));
  EXPECT_EQ(gpt2("pruned_heads", "{}"), "accepted");
}

TEST(HfRefusal, SizesThatWouldOverflowAreRefused) {
  std::string wide = with(with(kTinyLlama, "hidden_size", "1048576"), "intermediate_size", "2097152");
  EXPECT_THAT(refusal(wide),
              HasSubstr("the parameter 'model.layers.0.mlp.gate_proj.weight' has 2199023255552 "
                        "elements, but at most 1099511627776 are supported"));
  std::string deep = with(with(kTinyGpt2, "n_embd", "262144"), "n_layer", "4096");
  EXPECT_THAT(refusal(deep), HasSubstr("parameters, but at most 35184372088832 are supported"));
  EXPECT_THAT(
      refusal(kTinyGpt2, {}, int64_t{1} << 40),
      HasSubstr("the logits of 1099511627776 samples of 16 tokens, 64 for each token, are more than"));
  // Weights of attention exist as a tensor where a bias is added to them.
  constexpr const char *kTinyT5 =
      R"({"model_type": "t5", "vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48,
    "num_layers": 2, "num_heads": 4, "n_positions": 1000000})";
  EXPECT_THAT(refusal(kTinyT5), HasSubstr("the attention weights of 1 samples of 1000000 tokens"));
  EXPECT_THAT(refusal(with(with(kTinyLlama, "max_position_embeddings", "2097152"), "vocab_size", "64"),
                      {"document_ids=1x2097152xi64"}),
              HasSubstr("the mask of documents of 1 samples of 2097152 tokens"));
  EXPECT_THAT(llama("head_dim", "65536"), "accepted");
  EXPECT_THAT(refusal(with(with(kTinyLlama, "head_dim", "65536"), "num_attention_heads", "64")),
              HasSubstr("head_dim: expects heads of at most 2097152 elements together"));
}

TEST(HfRefusal, InputsMustFitTheModel) {
  auto input = [](std::vector<std::string> inputs) { return refusal(kTinyGpt2, std::move(inputs)); };
  EXPECT_EQ(input({"input_ids=2x8xi64", "labels=2x8xi64"}), "accepted");
  EXPECT_EQ(input({"input_ids=2x17xi64"}), "samples of 17 tokens are asked for, but config.json has 16 "
                                           "positions; shorten the samples, or raise the "
                                           "number of positions in config.json");
  EXPECT_THAT(input({"x=2x8xi64"}), HasSubstr("gives 'x', but the forward takes input_ids and labels"));
  EXPECT_THAT(input({"input_ids=2x8xi64", "labels=2x9xi64"}),
              HasSubstr("gives 'labels' another shape than the argument before it"));
  EXPECT_EQ(input({"input_ids=2x8xi64", "position_ids=2x8xi64", "document_ids=2x8xi64"}), "accepted");
  EXPECT_THAT(input({"document_ids=2x8xi64", "position_ids=2x9xi64"}),
              HasSubstr("'position_ids' another shape"));
  EXPECT_THAT(input({"document_ids=2x8xi64", "input_ids=2x8xi64", "document_ids=2x8xi64"}),
              HasSubstr("twice"));
  EXPECT_THAT(input({"input_ids=2x8xi64", "input_ids=2x8xi64"}), HasSubstr("twice"));
  EXPECT_THAT(input({"input_ids=2x8xf32"}), HasSubstr("expects samples of tokens, BxTxi64"));
  EXPECT_THAT(input({"input_ids=8xi64"}), HasSubstr("expects samples of tokens, BxTxi64"));
  EXPECT_THAT(input({"input_ids=0x8xi64"}),
              HasSubstr("2: --input 'input_ids=0x8xi64' has a size that is not"));
  EXPECT_THAT(input({"2x8xi64"}), HasSubstr("2: --input '2x8xi64' has no name"));
}

} // namespace
