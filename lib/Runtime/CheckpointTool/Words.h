//===- Words.h - Words and values that several descriptions share ---------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_WORDS_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_WORDS_H

#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Support/Format.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace ds::rt {

using Json = nlohmann::ordered_json;

/// A document as a line of its own, whatever bytes its texts have.
inline std::string dump(const Json &document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// "852,123,648", of any number.
inline std::string exactText(uint64_t number) {
  return formatExact(static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)));
}
inline std::string bytesText(uint64_t bytes) {
  return formatBytes(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)));
}

inline const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }

/// "4 ranks [dp = 2, tp = 2]".
std::string meshText(const Mesh &mesh);

/// When the manifest in `directory` was written: "2026-05-17 09:30:00 UTC"; empty where that is not known.
std::string timeText(const std::string &directory);

/// Of a manifest that was read: no product overflows.
uint64_t elementsOf(const CheckpointTensor &tensor);
uint64_t bytesOf(const CheckpointTensor &tensor);
uint64_t bytesOf(const Manifest &manifest);

/// [{"name": "valid", "loss": 3.25}], null where a loss is not finite.
Json evaluationsJson(const Manifest &manifest);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_WORDS_H
