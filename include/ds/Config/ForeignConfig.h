//===- ForeignConfig.h - Configurations of other tools --------------------------===//
#ifndef DS_CONFIG_FOREIGNCONFIG_H
#define DS_CONFIG_FOREIGNCONFIG_H

#include <optional>
#include <string>
#include <string_view>

namespace ds::config {

/// A text that is no configuration of DeepSpeed's.
struct ForeignConfig {
  std::string what; ///< "a configuration of Accelerate's"
  std::string hint; ///< how to get from it to one that can be read
};

/// What `text` is if another tool wrote it (Accelerate, GPT-NeoX) or if it is YAML; none for anything else,
/// JSON with mistakes among it. Safe for any bytes.
std::optional<ForeignConfig> findForeignConfig(std::string_view text);

} // namespace ds::config

#endif // DS_CONFIG_FOREIGNCONFIG_H
