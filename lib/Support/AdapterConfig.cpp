//===- AdapterConfig.cpp - Reads the adapter_config.json of PEFT --------------------===//
//
// A key that would change what is computed and that nothing here computes is refused, known or not: an
// adapter that is trained by other formulas than it was made by is worth nothing. Keys that only say where
// something came from are passed over.
//
//===---------------------------------------------------------------------------===//
#include "ds/Support/Adapters.h"
#include "ds/Support/ModelConfig.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace ds {
namespace {

using Json = nlohmann::ordered_json; // PEFT takes the first name that a layer ends with

/// Keys of no consequence for the numbers.
constexpr std::array kIgnored = {
    "auto_mapping",      "base_model_name_or_path", "revision",     "task_type",
    "inference_mode",    "megatron_core",           "peft_version", "runtime_config",
    "qalora_group_size", "layers_pattern",          "loftq_config"};

/// A key that must be off, and what would do instead.
struct Refused {
  const char *key, *hint;
};
constexpr std::array kRefused = {
    Refused{"use_dora", "train without DoRA: its magnitudes have no op here"},
    Refused{"modules_to_save", "train such modules by themselves, with --freeze for the others"},
    Refused{"exclude_modules", "list in target_modules the layers that are left"},
    Refused{"layers_to_transform", "list in target_modules the layers that are meant, by their full names"},
    Refused{"layer_replication", "write the repeated layers into config.json"},
    Refused{"lora_bias", "train without it"},
    Refused{"target_parameters",
            "list layers in target_modules; parameters outside of linear layers get no adapter"},
    Refused{"trainable_token_indices", "leave it out: rows of embeddings are not trained alone"},
    Refused{"use_qalora", "leave it out: programs have no quantised weights yet"},
    Refused{"megatron_config", "leave it out: ranks are ds-opt's to divide layers among"},
};

/// Whether a value says nothing: null, false, and what is empty.
bool isOff(const Json &value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

/// A value as a message shows it; of what is nested its kind alone.
std::string spell(const Json &value) {
  return value.is_structured() ? "an " + std::string(value.type_name())
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// One file while it is read.
class ConfigReader {
public:
  ConfigReader(const Json &json, const std::string &origin) : json(json), origin(origin) {
    request.origin = origin;
  }

  Result<AdapterRequest> read() {
    for (auto part : {&ConfigReader::checkKeys, &ConfigReader::readSize, &ConfigReader::readTargets,
                      &ConfigReader::readRanks, &ConfigReader::readAlphas})
      if (Status status = (this->*part)(); !status)
        return status.error();
    return request;
  }

private:
  Error refuse(const std::string &key, const std::string &expected, const std::string &hint) const {
    const std::string value = json.contains(key) ? spell(json[key]) : "nothing";
    return Error{ExitCode::Invalid, origin + ": " + key + ": expects " + expected + ", but got " + value,
                 hint};
  }
  Status checkKeys();
  Status checkKnown(const std::string &key) const;
  Status readSize();
  Status readTargets();
  Status readRanks();
  Status readAlphas();
  /// The entry of a layer in a pattern of numbers; `take` says no to a number out of range.
  template <class Take>
  Status readPattern(const char *key, const char *expected, Take take);
  std::optional<int64_t> rankIn(const Json &value) const;
  std::optional<double> alphaIn(const Json &value) const;

  const Json &json;
  const std::string &origin;
  AdapterRequest request;
  AdapterSize size;
};

Status ConfigReader::checkKnown(const std::string &key) const {
  for (const Refused &refused : kRefused)
    if (key == refused.key)
      return refuse(key, "null or false", refused.hint);
  return refuse(
      key, "a known key",
      "it may change what an adapter computes; take it out if it does not, and train by PEFT if it does");
}

Status ConfigReader::checkKeys() {
  constexpr std::array kRead = {
      "r",    "lora_alpha",   "lora_dropout",  "target_modules",    "use_rslora",    "peft_type",
      "bias", "rank_pattern", "alpha_pattern", "init_lora_weights", "fan_in_fan_out"};
  if (!json.contains("peft_type") || json["peft_type"] != "LORA")
    return refuse("peft_type", "\"LORA\"", "other adapters than LoRA have no pass");
  if (json.contains("bias") && json["bias"] != "none")
    return refuse("bias", "\"none\"", "train biases by themselves, with --freeze for the others");
  if (json.contains("init_lora_weights")) {
    const Json &start = json["init_lora_weights"];
    if (!start.is_boolean() && start != "gaussian") // others change the base weights as well
      return refuse("init_lora_weights", "true, false or \"gaussian\"",
                    "convert the adapter to plain LoRA, as PEFT's "
                    "save_pretrained(path_initial_model_for_weight_conversion=...) does");
  }
  for (const auto &[key, value] : json.items())
    if (std::ranges::find(kRead, key) == kRead.end() && std::ranges::find(kIgnored, key) == kIgnored.end() &&
        !isOff(value))
      if (Status status = checkKnown(key); !status)
        return status;
  return {};
}

std::optional<int64_t> ConfigReader::rankIn(const Json &value) const {
  constexpr int64_t kMost = 1 << 20;
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > kMost)
    return std::nullopt;
  return value.get<int64_t>();
}

std::optional<double> ConfigReader::alphaIn(const Json &value) const {
  if (!value.is_number() || !(value.get<double>() > 0) || !(value.get<double>() <= 1e6))
    return std::nullopt;
  return value.get<double>();
}

Status ConfigReader::readSize() {
  if (json.contains("r")) {
    const std::optional<int64_t> rank = rankIn(json["r"]);
    if (!rank)
      return refuse("r", "a whole number of at least 1", "8 is PEFT's default");
    size.rank = *rank;
  }
  if (json.contains("lora_alpha")) {
    const std::optional<double> alpha = alphaIn(json["lora_alpha"]);
    if (!alpha)
      return refuse("lora_alpha", "a positive number", "8 is PEFT's default");
    size.alpha = *alpha;
  }
  if (json.contains("lora_dropout")) {
    const Json &dropout = json["lora_dropout"];
    if (!dropout.is_number() || !(dropout.get<double>() >= 0) || !(dropout.get<double>() < 1))
      return refuse("lora_dropout", "a number from 0 to below 1", "0 is PEFT's default");
    request.dropout = dropout.get<double>();
  }
  for (const auto &[key, target] :
       {std::pair("use_rslora", &request.isRankStabilized), {"fan_in_fan_out", &request.isTransposed}})
    if (json.contains(key)) {
      if (!json[key].is_boolean())
        return refuse(key, "true or false", "false is PEFT's default");
      *target = json[key].get<bool>();
    }
  return {};
}

Status ConfigReader::readTargets() {
  const char *hint =
      "list the ends of their names, as [\"q_proj\", \"v_proj\"]; --lora PATTERN:RANK takes globs";
  if (!json.contains("target_modules") || !json["target_modules"].is_array() ||
      json["target_modules"].empty())
    return refuse("target_modules", "a list of names", hint);
  for (const Json &name : json["target_modules"]) {
    if (!name.is_string() || name.empty())
      return refuse("target_modules", "a list of names", hint);
    request.rules.push_back({name.get<std::string>(), /*isSuffix=*/true, size});
  }
  return {};
}

template <class Take>
Status ConfigReader::readPattern(const char *key, const char *expected, Take take) {
  if (!json.contains(key) || json[key].is_null())
    return {};
  const char *hint = "write names of layers, or their ends, and no other expression";
  if (!json[key].is_object())
    return refuse(key, "an object of layers", hint);
  for (const auto &[layer, value] : json[key].items()) {
    // PEFT's keys are regular expressions: of those, names alone are read, in which a dot means itself.
    if (layer.empty() || layer.find_first_of("\\*+?[](){}|^$") != layer.npos)
      return refuse(key, "names of layers as keys", hint);
    AdapterException exception{layer, std::nullopt, std::nullopt};
    if (!take(exception, value))
      return refuse(key, expected, "leave the layer out to give it the size of the others");
    request.exceptions.push_back(exception);
  }
  return {};
}

Status ConfigReader::readRanks() {
  return readPattern(
      "rank_pattern", "whole numbers of at least 1",
      [this](AdapterException &to, const Json &value) { return (to.rank = rankIn(value)).has_value(); });
}

Status ConfigReader::readAlphas() {
  return readPattern("alpha_pattern", "positive numbers", [this](AdapterException &to, const Json &value) {
    return (to.alpha = alphaIn(value)).has_value();
  });
}

} // namespace

Result<AdapterRequest> parseAdapterConfig(const std::string &text, const std::string &origin) {
  if (!isModelConfig(text))
    return Error{ExitCode::Invalid, origin + ": expects one JSON object", "PEFT's save_pretrained writes it"};
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return ConfigReader(json, origin).read();
}

Result<AdapterRequest> readAdapterFolder(const std::string &folder) {
  const std::string path = (std::filesystem::path(folder) / kAdapterConfigFile).string();
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error))
    file.open(path, std::ios::binary);
  std::string text(kMaxModelConfigBytes + 1, '\0');
  if (file)
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    return Error{ExitCode::Io, path + ": cannot be read",
                 "name the folder that PEFT's save_pretrained has written"};
  text.resize(static_cast<size_t>(file.gcount()));
  return parseAdapterConfig(text, path);
}

} // namespace ds
