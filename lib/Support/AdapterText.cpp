//===- AdapterText.cpp - Adapters as PEFT's adapter_config.json ---------------------===//
#include "ds/Support/Adapters.h"
#include "ds/Support/ModelConfig.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>

namespace ds {

using Json = nlohmann::ordered_json;
/// The entry's key in the text of a config.json.
static constexpr const char *kEntry = "\"peft_config\":";

/// What most layers have of a number.
template <class Number>
static Number mostCommon(const std::vector<AdapterLayer> &layers, Number AdapterSize::*number) {
  std::map<Number, size_t> counts;
  for (const AdapterLayer &layer : layers)
    ++counts[layer.size.*number];
  return std::ranges::max_element(counts, {}, [](const auto &entry) { return entry.second; })->first;
}

/// The layers whose `number` is not what `most` have, and those whose names end as theirs, with longer names
/// first: PEFT takes the first name that a layer ends with.
template <class Number>
static std::vector<AdapterLayer> exceptionsOf(const std::vector<AdapterLayer> &layers,
                                              Number AdapterSize::*number, Number most) {
  std::vector<AdapterLayer> differing, all;
  std::ranges::copy_if(layers, std::back_inserter(differing),
                       [&](const AdapterLayer &layer) { return layer.size.*number != most; });
  std::ranges::copy_if(layers, std::back_inserter(all), [&](const AdapterLayer &layer) {
    return std::ranges::any_of(
        differing, [&](const AdapterLayer &other) { return endsWithComponents(layer.name, other.name); });
  });
  std::ranges::stable_sort(all, std::greater(), [](const AdapterLayer &layer) { return layer.name.size(); });
  return all;
}

/// A whole number where it is one, as people write alpha.
static Json numberOf(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

std::string spellAdapterConfig(const AdapterDescription &adapters) {
  const auto rank = mostCommon(adapters.layers, &AdapterSize::rank);
  const auto alpha = mostCommon(adapters.layers, &AdapterSize::alpha);
  Json ranks = Json::object(), alphas = Json::object();
  for (const AdapterLayer &layer : exceptionsOf(adapters.layers, &AdapterSize::rank, rank))
    ranks[layer.name] = layer.size.rank;
  for (const AdapterLayer &layer : exceptionsOf(adapters.layers, &AdapterSize::alpha, alpha))
    alphas[layer.name] = numberOf(layer.size.alpha);
  Json json = {{"peft_type", "LORA"},
               {"task_type", nullptr},
               {"base_model_name_or_path", nullptr},
               {"revision", nullptr},
               {"inference_mode", true},
               {"r", rank},
               {"lora_alpha", numberOf(alpha)},
               {"lora_dropout", numberOf(adapters.dropout)},
               {"target_modules", adapters.targets},
               {"rank_pattern", ranks},
               {"alpha_pattern", alphas},
               {"use_rslora", adapters.isRankStabilized},
               {"use_dora", false},
               {"fan_in_fan_out", adapters.isTransposed},
               {"bias", "none"},
               {"modules_to_save", nullptr},
               {"layers_to_transform", nullptr},
               {"layers_pattern", nullptr},
               {"init_lora_weights", true}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The entry stands last, so that without it the text is what it was, byte by byte.

/// Where the entry and where its end are; none: there is no entry.
static std::optional<std::pair<size_t, size_t>> findEntry(const std::string &text) {
  const size_t end = text.rfind('}');
  const size_t key = end == text.npos ? text.npos : text.rfind(kEntry, end);
  if (key == text.npos)
    return std::nullopt;
  const size_t value = key + std::string_view(kEntry).size();
  if (value > end || !isModelConfig(std::string_view(text).substr(value, end - value)))
    return std::nullopt;
  return std::pair(key, end);
}

std::string withAdapterConfig(const std::string &modelConfig, const std::string &adapterConfig) {
  const std::string before = withoutAdapterConfig(modelConfig);
  const size_t end = before.rfind('}');
  if (end == before.npos)
    return "{" + std::string(kEntry) + adapterConfig + "}";
  const bool isEmpty = before.find('"') == before.npos;
  return before.substr(0, end) + (isEmpty ? "" : ",") + kEntry + adapterConfig + before.substr(end);
}

std::string adapterConfigOf(const std::string &modelConfig) {
  const auto entry = findEntry(modelConfig);
  if (!entry)
    return "";
  const size_t value = entry->first + std::string_view(kEntry).size();
  return modelConfig.substr(value, entry->second - value);
}

std::string withoutAdapterConfig(const std::string &modelConfig) {
  const auto entry = findEntry(modelConfig);
  if (!entry)
    return modelConfig;
  std::string before = modelConfig.substr(0, entry->first);
  if (before == "{")
    return "";
  if (before.ends_with(','))
    before.pop_back();
  return before + modelConfig.substr(entry->second);
}

} // namespace ds
