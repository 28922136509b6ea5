//===- Adapters.h - Which layers get low-rank adapters, and how large they are ------===//
//
// A linear layer W stays as it is, and scale * (dropout(x) A^T) B^T is added to what it gives (Hu et al.,
// "LoRA: Low-Rank Adaptation of Large Language Models", 2021). What is asked for comes from a command line or
// from the adapter_config.json of PEFT, whose names and formulas hold. A description in that file's form goes
// with a model into programs and checkpoints, as the entry `peft_config` of the text of its config.json.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_ADAPTERS_H
#define DS_SUPPORT_ADAPTERS_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds {

/// What PEFT calls the files of a folder.
inline constexpr const char *kAdapterConfigFile = "adapter_config.json",
                            *kAdapterWeightsFile = "adapter_model.safetensors";

/// PEFT's names of the two factors of a layer.
std::string adapterNameA(std::string_view layer);
std::string adapterNameB(std::string_view layer);

/// The layer whose adapter is named so, of either factor; empty where the name is none of an adapter.
std::string_view layerOfAdapter(std::string_view name);

/// Whether `name` ends with the components of `suffix`, as "h.0.fc" does with "0.fc" and with "fc".
bool endsWithComponents(std::string_view name, std::string_view suffix);

struct AdapterSize {
  int64_t rank = 8;
  double alpha = 8;
};

/// Layers that get an adapter, by what they are called.
struct AdapterRule {
  std::string pattern;
  bool isSuffix = false; ///< whole components at a name's end, as PEFT has it; else a glob
  AdapterSize size;

  /// Whether the layer, or parameter, of this name is meant.
  bool matches(std::string_view name) const;
};

/// What differs for some of the layers: PEFT's rank_pattern and alpha_pattern. Of several that match a layer
/// the first counts.
struct AdapterException {
  std::string suffix;
  std::optional<int64_t> rank;
  std::optional<double> alpha;
};

/// What is asked for.
struct AdapterRequest {
  std::string origin;             ///< for messages: "--lora", or the file
  std::vector<AdapterRule> rules; ///< of those that match a layer, the first counts
  std::vector<AdapterException> exceptions;
  double dropout = 0;
  bool isRankStabilized = false; ///< the scale is alpha / sqrt(rank), not alpha / rank
  bool isTransposed = false;     ///< of a description: matrices are [inputs, outputs]

  /// The size for the layer that `rule` means.
  AdapterSize sizeOf(const AdapterRule &rule, std::string_view layer) const;
  /// The size for the layer of this name, if it has an adapter.
  std::optional<AdapterSize> find(std::string_view layer) const;
  /// What the product of the factors is multiplied by.
  double scaleOf(const AdapterSize &size) const;
};

/// Reads PATTERN:RANK[:ALPHA[:DROPOUT]]. Usage: a spec is none, or two want different dropout, for which
/// adapter_config.json has one place.
Result<AdapterRequest> parseAdapterRules(const std::vector<std::string> &specs);

/// Reads the adapter_config.json in `folder`. Invalid: a key asks for something else than the above.
Result<AdapterRequest> readAdapterFolder(const std::string &folder);

/// Reads the text of an adapter_config.json; `origin` is for messages.
Result<AdapterRequest> parseAdapterConfig(const std::string &text, const std::string &origin);

struct AdapterLayer {
  std::string name;
  AdapterSize size;
};

/// Adapters as they are in a model.
struct AdapterDescription {
  std::vector<AdapterLayer> layers; ///< one at least
  std::vector<std::string> targets; ///< what PEFT finds exactly these by
  double dropout = 0;
  bool isRankStabilized = false, isTransposed = false;
};

/// The text of an adapter_config.json.
std::string spellAdapterConfig(const AdapterDescription &adapters);

/// `modelConfig`, which may be empty, with the description of its adapters.
std::string withAdapterConfig(const std::string &modelConfig, const std::string &adapterConfig);

/// The description in `modelConfig`; empty: there is none.
std::string adapterConfigOf(const std::string &modelConfig);

/// `modelConfig` without it; empty where nothing else was there.
std::string withoutAdapterConfig(const std::string &modelConfig);

} // namespace ds

#endif // DS_SUPPORT_ADAPTERS_H
