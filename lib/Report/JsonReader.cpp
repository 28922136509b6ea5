//===- JsonReader.cpp - Typed members of a JSON that is not trusted -------------===//

#include "JsonReader.h"

#include <set>
#include <stdexcept>
#include <vector>

namespace ds::report {

std::string joinKeys(const std::string &path, const std::string &key) {
  return path.empty() ? key : path + "." + key;
}

/// What a fault says behind "[json.exception.out_of_range.406] ", or all of it.
static std::string reasonOf(const std::exception &fault) {
  std::string text = fault.what();
  size_t bracket = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

Json JsonReader::parse(const std::string &text) {
  std::string where, what;
  std::vector<std::set<std::string>> keys;
  auto watch = [&](int depth, Json::parse_event_t event, Json &value) {
    if (depth > 32) // no plan is; what walks a document later may recurse
      throw std::length_error("is nested more than 32 levels deep");
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
             what.empty())
      where = "key \"" + value.get<std::string>() + "\"", what = "is given twice";
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::parse_error &fault) {
    where = "byte " + std::to_string(fault.byte), what = "is no JSON: ";
    std::string reason = reasonOf(fault); // "parse error at line 1, column 2: why"
    size_t colon = reason.find(": ");
    what += colon == std::string::npos ? reason : reason.substr(colon + 2);
  } catch (const std::exception &fault) {
    where = "top level", what = reasonOf(fault);
  }
  if (!what.empty())
    fail(where, what);
  return json;
}

void JsonReader::fail(const std::string &where, const std::string &what) {
  if (!error)
    error =
        Error{ExitCode::Corrupt, file + ": " + where + ": " + what, "write it anew with ds-opt --plan-json"};
}

const Json &JsonReader::member(const Json &json, const std::string &path, const char *key, bool required) {
  if (!json.is_object()) {
    fail(path.empty() ? "top level" : path, "expects an object, but got " + std::string(json.type_name()));
    return nothing;
  }
  auto found = json.find(key);
  if (found == json.end()) {
    if (required)
      fail(joinKeys(path, key), "the key is missing");
    return nothing;
  }
  return *found;
}

int64_t JsonReader::integer(const Json &json, const std::string &path, int64_t most) {
  if (error)
    return 0;
  bool whole = json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t(most);
  if (!whole)
    fail(path, "expects a whole number from 0 to " + std::to_string(most) + ", but got " +
                   json.dump().substr(0, 40));
  return whole ? json.get<int64_t>() : 0;
}

int64_t JsonReader::bytes(const Json &json, const std::string &path, const char *key) {
  return integer(member(json, path, key), joinKeys(path, key));
}

uint32_t JsonReader::small(const Json &json, const std::string &path, const char *key) {
  return static_cast<uint32_t>(integer(member(json, path, key), joinKeys(path, key), UINT32_MAX));
}

std::string JsonReader::text(const Json &json, const std::string &path, const char *key, bool required) {
  const Json &value = member(json, path, key, required);
  if (value.is_null() && !required)
    return "";
  if (!error && !value.is_string())
    fail(joinKeys(path, key), "expects a text, but got " + std::string(value.type_name()));
  return error ? "" : value.get<std::string>();
}

std::optional<double> JsonReader::real(const Json &json, const std::string &path, const char *key) {
  const Json &value = member(json, path, key);
  if (error || value.is_null())
    return std::nullopt;
  if (!value.is_number() || !(value.get<double>() >= 0)) {
    fail(joinKeys(path, key), "expects a number >= 0, but got " + value.dump().substr(0, 40));
    return std::nullopt;
  }
  return value.get<double>();
}

bool JsonReader::flag(const Json &json, const std::string &path, const char *key) {
  const Json &value = member(json, path, key, false);
  if (!error && !value.is_null() && !value.is_boolean())
    fail(joinKeys(path, key), "expects true or false, but got " + std::string(value.type_name()));
  return value.is_boolean() && value.get<bool>();
}

const Json &JsonReader::list(const Json &json, const std::string &path, const char *key, bool required) {
  const Json &value = member(json, path, key, required);
  if (!error && !value.is_array() && (required || !value.is_null()))
    fail(joinKeys(path, key), "expects a list, but got " + std::string(value.type_name()));
  return value.is_array() ? value : nothing;
}

} // namespace ds::report
