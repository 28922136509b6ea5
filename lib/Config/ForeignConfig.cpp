//===- ForeignConfig.cpp - Configurations of other tools ---------------------------===//
//
// Users hand in what another launcher has taken: Accelerate's YAML, which names a file of DeepSpeed's or
// stands for one, and GPT-NeoX's, which has the model's sizes among DeepSpeed's keys. A reader of JSON would
// complain of an unquoted text in the first line, or of twenty unknown keys. The texts are recognised by keys
// that nothing else has.
//
//===---------------------------------------------------------------------------===//
#include "ds/Config/ForeignConfig.h"

#include <algorithm>
#include <cctype>

namespace ds::config {

/// Whether `text` has one of the spellings of a key: with - for _ too, quoted or not, as "key": or key:.
static bool hasKey(std::string_view text, std::string_view key) {
  std::string dashed(key);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (std::string_view name : {key, std::string_view(dashed)})
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const auto isLetter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
      if (at > 0 && isLetter(text[at - 1]))
        continue;
      std::string_view rest = text.substr(at + name.size());
      rest.remove_prefix(std::min(rest.find_first_not_of("\"' "), rest.size()));
      if (rest.starts_with(':'))
        return true;
    }
  return false;
}

/// Whether the first line that says something is "key:" or "key: value" without quotes or braces, or "---".
static bool isYaml(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.starts_with('#'))
      continue;
    const size_t colon =
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    return line.starts_with("---") || line.starts_with("%YAML") ||
           (colon != std::string_view::npos && colon > 0 && line[colon] == ':' &&
            (colon + 1 == line.size() || std::isspace(static_cast<unsigned char>(line[colon + 1]))));
  }
  return false;
}

std::optional<ForeignConfig> findForeignConfig(std::string_view text) {
  constexpr size_t kMost = size_t(1) << 20;
  text = text.substr(0, kMost);
  if (hasKey(text, "compute_environment") ||
      (hasKey(text, "distributed_type") && hasKey(text, "num_processes")))
    return ForeignConfig{"a configuration of Accelerate's",
                         "give the file that its deepspeed_config_file names, or one with the keys of its "
                         "deepspeed_config (zero_stage is zero_optimization.stage)"};
  if (hasKey(text, "pipe_parallel_size") &&
      (hasKey(text, "num_layers") || hasKey(text, "vocab_file") || hasKey(text, "model_parallel_size")))
    return ForeignConfig{"a configuration of GPT-NeoX, of a model and its training in one",
                         "put DeepSpeed's keys into a file of their own (train_micro_batch_size_per_gpu, "
                         "optimizer, zero_optimization, fp16), and the model's into a config.json"};
  if (isYaml(text))
    return ForeignConfig{"YAML", "configurations are JSON: python3 -c 'import json, sys, yaml; "
                                 "json.dump(yaml.safe_load(sys.stdin), sys.stdout)' < FILE > ds_config.json"};
  return std::nullopt;
}

} // namespace ds::config
