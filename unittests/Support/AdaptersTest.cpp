//===- AdaptersTest.cpp - Which layers get adapters, and of what size ------------===//
#include "ds/Support/Adapters.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ds {
namespace {

/// The error of a text that is refused.
std::string refusal(const std::string &entries) {
  const std::string text = "{\"peft_type\": \"LORA\", \"target_modules\": [\"q_proj\"]" +
                           (entries.empty() ? "" : ", " + entries) + "}";
  const Result<AdapterRequest> request = parseAdapterConfig(text, "a.json");
  return request ? "" : request.error().message;
}

std::string specRefusal(const std::vector<std::string> &specs) {
  const Result<AdapterRequest> request = parseAdapterRules(specs);
  return request ? "" : request.error().message;
}

TEST(AdapterRules, SayWhichLayersAndHowLarge) {
  const Result<AdapterRequest> request = parseAdapterRules({"*.q_proj:16:32:0.05", "h.?.fc:4:8:0.05"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->dropout, 0.05);
  EXPECT_EQ(request->find("a.q_proj")->rank, 16);
  EXPECT_EQ(request->scaleOf(*request->find("a.q_proj")), 2);
  EXPECT_EQ(request->find("h.3.fc")->rank, 4);
  EXPECT_FALSE(request->find("h.13.fc"));
  EXPECT_FALSE(request->find("q_proj"));
  EXPECT_EQ(parseAdapterRules({"x:8"})->rules[0].size.alpha, 8); // as PEFT
}

TEST(AdapterRules, AreRefusedByWhatIsWrong) {
  EXPECT_NE(specRefusal({"x"}).find("expects PATTERN:RANK"), std::string::npos);
  EXPECT_NE(specRefusal({":8"}).find("expects PATTERN:RANK"), std::string::npos);
  EXPECT_NE(specRefusal({"x:0"}).find("--lora x:0: the rank"), std::string::npos);
  EXPECT_NE(specRefusal({"x:08"}).find("the rank"), std::string::npos);
  EXPECT_NE(specRefusal({"x:8:0"}).find("alpha"), std::string::npos);
  EXPECT_NE(specRefusal({"x:8:8:1"}).find("dropout"), std::string::npos);
  EXPECT_NE(specRefusal({"x:8:8:0.1", "y:8"}).find("--lora y:8: dropout is"), std::string::npos);
}

TEST(AdapterConfig, HasSuffixesAndExceptions) {
  const Result<AdapterRequest> request = parseAdapterConfig(
      R"({"peft_type": "LORA", "r": 4, "lora_alpha": 16, "lora_dropout": 0.1, "use_rslora": true, "bias": "none",
          "target_modules": ["q_proj", "h.0.fc"], "rank_pattern": {"h.1.q_proj": 9}, "alpha_pattern": {"fc": 2},
          "task_type": "CAUSAL_LM", "use_dora": false, "loftq_config": {}, "corda_config": null, "peft_version": "0.17"})",
      "a.json");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->find("h.0.q_proj")->rank, 4);
  EXPECT_EQ(request->find("h.1.q_proj")->rank, 9);
  EXPECT_EQ(request->find("h.0.fc")->alpha, 2);
  EXPECT_FALSE(request->find("h.0.seq_proj"));
  EXPECT_FALSE(request->find("h.10.fc"));
  EXPECT_DOUBLE_EQ(request->scaleOf({4, 16}), 8);
}

TEST(AdapterConfig, RefusesWhatWouldComputeSomethingElse) {
  EXPECT_EQ(refusal(""), "");
  for (const auto &[entries, key] :
       {std::pair("\"use_dora\": true", "use_dora: expects null or false, but got true"),
        {"\"bias\": \"all\"", "bias: expects \"none\", but got \"all\""},
        {"\"modules_to_save\": [\"head\"]", "modules_to_save: expects null or false, but got an array"},
        {"\"layers_to_transform\": 3", "layers_to_transform: expects null or false, but got 3"},
        {"\"init_lora_weights\": \"pissa\"", "init_lora_weights: expects true, false or \"gaussian\""},
        {"\"use_something\": true", "use_something: expects a known key, but got true"},
        {"\"r\": 0", "r: expects a whole number of at least 1, but got 0"},
        {"\"r\": 2.5", "r: expects"},
        {"\"lora_alpha\": -1", "lora_alpha: expects a positive number, but got -1"},
        {"\"lora_dropout\": 1", "lora_dropout: expects"},
        {"\"use_rslora\": 1", "use_rslora: expects true or false"},
        {"\"rank_pattern\": {\"h\\\\d\": 4}", "rank_pattern: expects names of layers as keys"},
        {"\"rank_pattern\": {\"h\": 0}", "rank_pattern: expects whole numbers"},
        {"\"alpha_pattern\": {\"h\": \"x\"}", "alpha_pattern: expects positive numbers"}})
    EXPECT_NE(refusal(entries).find(std::string("a.json: ") + key), std::string::npos) << entries;
  EXPECT_FALSE(parseAdapterConfig(R"({"peft_type": "IA3", "target_modules": ["q"]})", "a.json"));
  EXPECT_FALSE(parseAdapterConfig(R"({"peft_type": "LORA", "target_modules": ".*q"})", "a.json"));
  EXPECT_FALSE(parseAdapterConfig(R"({"peft_type": "LORA", "target_modules": []})", "a.json"));
  EXPECT_FALSE(parseAdapterConfig("[1]", "a.json"));
  EXPECT_EQ(readAdapterFolder("/nowhere").error().code, ExitCode::Io);
}

TEST(AdapterConfig, IsReadAsItIsSpelled) {
  // Of the last three, each ends as the one before.
  const AdapterDescription adapters{
      {{"m.h.0.q", {4, 8}}, {"m.h.1.q", {4, 8}}, {"fc", {7, 2.5}}, {"m.fc", {4, 8}}, {"n.m.fc", {5, 8}}},
      {"q", "fc"},
      0.25,
      true,
      true};
  const Result<AdapterRequest> request = parseAdapterConfig(spellAdapterConfig(adapters), "a.json");
  ASSERT_TRUE(request);
  for (const AdapterLayer &layer : adapters.layers) {
    EXPECT_EQ(request->find(layer.name)->rank, layer.size.rank);
    EXPECT_EQ(request->find(layer.name)->alpha, layer.size.alpha);
  }
  EXPECT_EQ(request->dropout, 0.25);
  EXPECT_TRUE(request->isRankStabilized && request->isTransposed);
}

TEST(AdapterConfig, LeavesTheModelsTextAsItWas) {
  const std::string adapters = spellAdapterConfig({{{"q", {4, 8}}}, {"q"}});
  for (const char *text : {"{\n \"model_type\": \"gpt2\", \"x\" : [1, {}]\n}\n", "{}", ""}) {
    const std::string both = withAdapterConfig(text, adapters);
    EXPECT_EQ(adapterConfigOf(both), adapters);
    EXPECT_EQ(withoutAdapterConfig(both), std::string(text) == "{}" ? "" : text);
    EXPECT_EQ(withAdapterConfig(both, adapters),
              std::string(text) == "{}" ? withAdapterConfig("", adapters) : both);
  }
  EXPECT_EQ(adapterConfigOf("{\"a\": 1}"), "");
  EXPECT_EQ(adapterConfigOf("no JSON \"peft_config\":}"), "");
  EXPECT_EQ(withoutAdapterConfig("{\"a\": 1}"), "{\"a\": 1}");
}

TEST(AdapterNames, AreThoseOfPeft) {
  EXPECT_EQ(adapterNameA("h.0.q"), "base_model.model.h.0.q.lora_A.weight");
  EXPECT_EQ(layerOfAdapter(adapterNameB("h.0.q")), "h.0.q");
  EXPECT_EQ(layerOfAdapter("h.0.q.weight"), "");
}

} // namespace
} // namespace ds
