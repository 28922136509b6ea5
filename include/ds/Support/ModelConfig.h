//===- ModelConfig.h - What the text of a config.json must be -------------------===//
#ifndef DS_SUPPORT_MODELCONFIG_H
#define DS_SUPPORT_MODELCONFIG_H

#include <cstddef>
#include <string_view>

namespace ds {

/// The text that goes with a model from module to program to checkpoint is no longer than this; published
/// ones have some kilobytes.
inline constexpr size_t kMaxModelConfigBytes = size_t(16) << 20;

/// Whether `text` is one JSON object in UTF-8, as everybody who loads a model's folder reads it (without
/// comments and other liberties), and short enough. Safe for any bytes.
bool isModelConfig(std::string_view text);

} // namespace ds

#endif // DS_SUPPORT_MODELCONFIG_H
