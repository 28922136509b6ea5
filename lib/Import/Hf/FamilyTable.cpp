//===- FamilyTable.cpp - The families of models that are read ---------------------===//

#include "FamilyTable.h"

#include "FamilyReaders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ds;
using namespace ds::hf;

template <DecoderSpec (*read)(const Section &)>
static std::unique_ptr<Architecture> decoder(const Section &config) {
  return std::make_unique<Decoder>(read(config));
}

static constexpr Family kFamilies[] = {
    {"bert", readBert, "BertForMaskedLM", "BertModel", "BertForPreTraining"},
    {"bloom", decoder<readBloom>, "BloomForCausalLM", "BloomModel"},
    {"camembert", readRoberta, "CamembertForMaskedLM", "CamembertModel"},
    {"cohere", decoder<readCohere>, "CohereForCausalLM", "CohereModel"},
    {"deepseek_v2", decoder<readDeepSeekV2>, "DeepseekV2ForCausalLM", "DeepseekV2Model"},
    {"deepseek_v3", decoder<readDeepSeekV3>, "DeepseekV3ForCausalLM", "DeepseekV3Model"},
    {"dinov2", readDinov2, "Dinov2ForImageClassification", "Dinov2Model"},
    {"distilbert", readDistilBert, "DistilBertForMaskedLM", "DistilBertModel"},
    {"electra", readElectra, "ElectraForMaskedLM", "ElectraModel"},
    {"falcon", decoder<readFalcon>, "FalconForCausalLM", "FalconModel"},
    {"gemma", decoder<readGemma>, "GemmaForCausalLM", "GemmaModel"},
    {"gemma2", decoder<readGemma2>, "Gemma2ForCausalLM", "Gemma2Model"},
    {"gemma3_text", decoder<readGemma3>, "Gemma3ForCausalLM", "Gemma3TextModel"},
    {"glm4", decoder<readGlm4>, "Glm4ForCausalLM", "Glm4Model"},
    {"gpt2", decoder<readGpt2>, "GPT2LMHeadModel", "GPT2Model"},
    {"gpt_bigcode", decoder<readGptBigcode>, "GPTBigCodeForCausalLM", "GPTBigCodeModel"},
    {"gpt_neo", decoder<readGptNeo>, "GPTNeoForCausalLM", "GPTNeoModel"},
    {"gpt_neox", decoder<readGptNeox>, "GPTNeoXForCausalLM", "GPTNeoXModel"},
    {"gpt_oss", decoder<readGptOss>, "GptOssForCausalLM", "GptOssModel"},
    {"gptj", decoder<readGptJ>, "GPTJForCausalLM", "GPTJModel"},
    {"granite", decoder<readGranite>, "GraniteForCausalLM", "GraniteModel"},
    {"llama", decoder<readLlama>, "LlamaForCausalLM", "LlamaModel"},
    {"llama4", decoder<readLlama4>, "Llama4ForCausalLM", "Llama4TextModel", "Llama4ForConditionalGeneration"},
    {"llama4_text", decoder<readLlama4Text>, "Llama4ForCausalLM", "Llama4TextModel"},
    {"minicpm", decoder<readMiniCpm>, "MiniCPMForCausalLM", "MiniCPMModel"},
    {"mistral", decoder<readMistral>, "MistralForCausalLM", "MistralModel"},
    {"mixtral", decoder<readMixtral>, "MixtralForCausalLM", "MixtralModel"},
    {"modernbert", readModernBert, "ModernBertForMaskedLM", "ModernBertModel"},
    {"mt5", readMt5, "MT5ForConditionalGeneration", "MT5Model"},
    {"nemotron", decoder<readNemotron>, "NemotronForCausalLM", "NemotronModel"},
    {"olmo", decoder<readOlmo>, "OlmoForCausalLM", "OlmoModel"},
    {"olmo2", decoder<readOlmo2>, "Olmo2ForCausalLM", "Olmo2Model"},
    {"opt", decoder<readOpt>, "OPTForCausalLM", "OPTModel"},
    {"phi", decoder<readPhi>, "PhiForCausalLM", "PhiModel"},
    {"phi3", decoder<readPhi3>, "Phi3ForCausalLM", "Phi3Model"},
    {"qwen2", decoder<readQwen2>, "Qwen2ForCausalLM", "Qwen2Model"},
    {"qwen2_moe", decoder<readQwen2Moe>, "Qwen2MoeForCausalLM", "Qwen2MoeModel"},
    {"qwen3", decoder<readQwen3>, "Qwen3ForCausalLM", "Qwen3Model"},
    {"qwen3_moe", decoder<readQwen3Moe>, "Qwen3MoeForCausalLM", "Qwen3MoeModel"},
    {"roberta", readRoberta, "RobertaForMaskedLM", "RobertaModel"},
    {"smollm3", decoder<readSmolLm3>, "SmolLM3ForCausalLM", "SmolLM3Model"},
    {"stablelm", decoder<readStableLm>, "StableLmForCausalLM", "StableLmModel", "StableLMEpochForCausalLM"},
    {"starcoder2", decoder<readStarcoder2>, "Starcoder2ForCausalLM", "Starcoder2Model"},
    {"t5", readT5, "T5ForConditionalGeneration", "T5Model"},
    {"vit", readVit, "ViTForImageClassification", "ViTModel"},
    {"whisper", readWhisper, "WhisperForConditionalGeneration", "WhisperModel"},
    {"xlm-roberta", readRoberta, "XLMRobertaForMaskedLM", "XLMRobertaModel"}};

//===----------------------------------------------------------------------===//
// Models of no family
//===----------------------------------------------------------------------===//

namespace {
/// How a family would read a configuration of another one.
struct Attempt {
  const Family *family;
  std::string refusal;             ///< the first, without its place; empty: there is none
  std::vector<std::string> unread; ///< keys that the family does not know
  unsigned distance;               ///< of the names, in letters
};
} // namespace

static Attempt attempt(const ConfigFile &file, const Family &family, llvm::StringRef type) {
  Attempt made{&family, "", {}, type.take_front(100).edit_distance(family.modelType)};
  Result<ConfigFile> copy = ConfigFile::parse(file.text(), "");
  if (!copy)
    return made;
  family.read(copy->root());
  if (Status status = copy->finish(); !status)
    made.refusal = llvm::StringRef(status.error().message).split(": ").second.str();
  made.unread = copy->unreadKeys();
  return made;
}

/// What of the configuration is not the family's.
static std::string difference(const Attempt &made) {
  static constexpr size_t kMaxKeys = 6;
  std::string text = made.family->modelType.str();
  if (!made.refusal.empty())
    return text + " (" + made.refusal + ")";
  if (made.unread.empty())
    return text + " (knows all keys)";
  const llvm::ArrayRef<std::string> keys(made.unread);
  return text + " (does not know " + llvm::join(keys.take_front(kMaxKeys), ", ") +
         (keys.size() > kMaxKeys ? " and " + std::to_string(keys.size() - kMaxKeys) + " more)" : ")");
}

/// The two families that come nearest to reading the configuration, and what they make of it.
static std::string nearest(const ConfigFile &file, llvm::StringRef type) {
  std::vector<Attempt> all;
  for (const Family &family : kFamilies)
    all.push_back(attempt(file, family, type));
  llvm::stable_sort(all, [](const Attempt &a, const Attempt &b) {
    auto rank = [](const Attempt &of) {
      return std::tuple(!of.refusal.empty(), of.unread.size(), of.distance);
    };
    return rank(a) < rank(b);
  });
  return difference(all[0]) + " and " + difference(all[1]);
}

/// What to do with a model of no family that is read.
static std::string otherWay(const Section &config) {
  for (std::string_view key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"})
    if (config.has(key))
      return "models with experts are not read yet, neither from config.json nor as TorchScript";
  return "export the model as TorchScript and give the .pt file";
}

/// The family of this model_type; null where there is none.
static const Family *familyOf(llvm::StringRef type) {
  const auto *found = llvm::find_if(kFamilies, [&](const Family &each) { return each.modelType == type; });
  return found == std::end(kFamilies) ? nullptr : found;
}

/// Refuses a model that sees or hears around the text model of `text`, its text_config, which may be read by
/// itself.
static void refuseAround(const Section &config, const config::Value &text) {
  Result<ConfigFile> part = ConfigFile::parse(config::toJson(text), "text_config");
  const std::string type = part ? part->root().text("model_type") : "";
  const Family *family = familyOf(type);
  std::string hint = "export the model as TorchScript and give the .pt file";
  if (family) {
    const std::string refusal = attempt(*part, *family, type).refusal;
    hint = "write the value of text_config to a config.json of its own, which is read as " + type +
           (refusal.empty() ? "" : ", once this is put right there: " + refusal);
  }
  config.refuse("model_type",
                "expects a model of text alone, but got " + config.describe("model_type") +
                    ", which has one in text_config" +
                    (family ? "" : ", of a model_type that is not read either: '" + type + "'"),
                hint);
}

const Family *ds::hf::findFamily(const ConfigFile &file) {
  const Section config = file.root();
  const std::string type = config.text("model_type");
  if (const Family *family = familyOf(type))
    return family;
  const config::Value *text = config.find("text_config");
  if (!type.empty() && text && text->is(config::Value::Kind::Object))
    return refuseAround(config, *text), nullptr;
  const std::string known =
      llvm::join(llvm::map_range(kFamilies, [](const Family &each) { return each.modelType.str(); }), ", ");
  if (config.has("model_type"))
    config.refuse("model_type",
                  "expects one of " + known + ", but got " + config.describe("model_type") +
                      "; the nearest are " + nearest(file, type),
                  otherWay(config));
  else
    config.refuse("model_type", "expects one of " + known + ", but the key is missing",
                  "give the config.json of a Hugging Face model");
  return nullptr;
}
