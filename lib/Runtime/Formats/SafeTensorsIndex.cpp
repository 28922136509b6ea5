//===- SafeTensorsIndex.cpp - Which shard holds which tensor -------------------===//
//
// Only weight_map matters; `metadata` (a total_size that writers get wrong) is skipped, whatever its values
// are, but not deeper than a few levels.
//
//===---------------------------------------------------------------------------===//

#include "SafeTensorsIndex.h"

#include "Files/Text.h"

#include <nlohmann/json.hpp>

using namespace ds::rt;

namespace {

class Handler {
public:
  // NOLINTBEGIN(readability-identifier-naming): the parser calls them by these names
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Handler(WeightIndex &index, std::string &message) : index(index), message(message) {}

  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(number_integer_t) { return other(); }
  bool number_unsigned(number_unsigned_t) { return other(); }
  bool number_float(number_float_t, const string_t &) { return other(); }
  bool binary(binary_t &) { return other(); }
  bool start_array(size_t) { return other() && enter(); }
  bool end_array() { return leave(); }

  bool start_object(size_t) {
    if (depth == 1 && section == "weight_map")
      return enter();
    return (depth == 0 || other()) && enter();
  }
  bool end_object() { return leave(); }

  bool key(string_t &name) {
    if (depth == 1) {
      if (name == "weight_map" && hasWeightMap)
        return fail("duplicate key 'weight_map'");
      hasWeightMap |= name == "weight_map";
      section = name;
    } else if (inWeightMap()) {
      tensor = name;
    }
    return true;
  }

  bool string(string_t &value) {
    if (!inWeightMap())
      return other();
    auto [file, isNew] = fileNumbers.try_emplace(value, uint32_t(fileNumbers.size()));
    if (!index.weightMap.try_emplace(tensor, file->second).second)
      return fail("weight_map: duplicate key " + quote(tensor));
    return true;
  }

  bool parse_error(size_t position, const std::string &token, const nlohmann::json::exception &) {
    return fail("is not JSON at byte " + std::to_string(position) + ", near " + quote(token));
  }

  // NOLINTEND(readability-identifier-naming)

  /// Numbers the files by name rather than by first mention.
  bool finish() {
    if (!hasWeightMap)
      return fail("expects an object 'weight_map' of tensor names to file names");
    std::vector<uint32_t> renumbered(fileNumbers.size());
    for (const auto &[name, number] : fileNumbers) {
      renumbered[number] = uint32_t(index.files.size());
      index.files.push_back(name);
    }
    for (auto &[name, number] : index.weightMap)
      number = renumbered[number];
    return true;
  }

private:
  static constexpr unsigned kMaxDepth = 8;

  bool inWeightMap() const { return depth == 2 && section == "weight_map"; }
  bool enter() { return ++depth <= kMaxDepth || fail("is nested deeper than " + std::to_string(kMaxDepth)); }
  bool leave() {
    --depth;
    return true;
  }
  bool fail(std::string text) {
    message = std::move(text);
    return false;
  }
  /// A value that is not a string, or that stands where no string is wanted.
  bool other() {
    if (depth == 0)
      return fail("expects an object");
    if (section != "weight_map")
      return true;
    return depth == 1 ? fail("weight_map: expects an object of file names")
                      : fail("weight_map: expects a file name for " + quote(tensor));
  }

  WeightIndex &index;
  std::string &message;
  unsigned depth = 0;
  std::string section, tensor; ///< current keys at depth 1 and 2
  bool hasWeightMap = false;
  std::map<std::string, uint32_t> fileNumbers; ///< by first mention
};

} // namespace

bool ds::rt::parseIndex(std::string_view json, WeightIndex &index, std::string &message) {
  if (size_t nul = json.find('\0'); nul != std::string_view::npos) {
    message = "has a NUL at byte " + std::to_string(nul); // which the parser would take for the end
    return false;
  }
  Handler handler(index, message);
  if (nlohmann::json::sax_parse(json.data(), json.data() + json.size(), &handler))
    return handler.finish();
  if (message.empty())
    message = "is not JSON";
  return false;
}
