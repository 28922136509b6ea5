//===- JsonReader.h - Typed members of a JSON that is not trusted ---------------===//
//
// An error names the key (`ranks[2].peak.bytes`) or the byte at which a file is wrong. No exception leaves
// it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_REPORT_JSONREADER_H
#define DS_LIB_REPORT_JSONREADER_H

#include "ds/Support/Error.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace ds::report {

using Json = nlohmann::ordered_json;

/// `path.key`, or the key at the top level.
std::string joinKeys(const std::string &path, const std::string &key);

/// Reads members of objects, whose `path` it is told, and remembers the first fault; after a fault it yields
/// neutral values.
class JsonReader {
public:
  explicit JsonReader(std::string file) : file(std::move(file)) {}

  /// Parses, with duplicate keys and deep nests refused.
  Json parse(const std::string &text);

  /// The member `key` of the object `json`, or null after a fault.
  const Json &member(const Json &json, const std::string &path, const char *key, bool required = true);
  int64_t integer(const Json &json, const std::string &path, int64_t most = INT64_MAX);
  int64_t bytes(const Json &json, const std::string &path, const char *key);
  uint32_t small(const Json &json, const std::string &path, const char *key);
  std::string text(const Json &json, const std::string &path, const char *key, bool required = true);
  std::optional<double> real(const Json &json, const std::string &path, const char *key);
  /// False where the key is missing.
  bool flag(const Json &json, const std::string &path, const char *key);
  const Json &list(const Json &json, const std::string &path, const char *key, bool required = true);

  void fail(const std::string &where, const std::string &what);
  std::optional<Error> error;

private:
  std::string file;
  const Json nothing;
};

} // namespace ds::report

#endif // DS_LIB_REPORT_JSONREADER_H
