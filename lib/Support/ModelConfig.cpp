//===- ModelConfig.cpp - What the text of a config.json must be -----------------===//
#include "ds/Support/ModelConfig.h"

#include <nlohmann/json.hpp>

namespace ds {

bool isModelConfig(std::string_view text) {
  // The parser would pass over a byte order mark, and take a NUL for the end; others do neither.
  const size_t first = text.find_first_not_of(" \t\r\n");
  return text.size() <= kMaxModelConfigBytes && first != text.npos && text[first] == '{' &&
         text.find('\0') == text.npos && nlohmann::json::accept(text);
}

} // namespace ds
