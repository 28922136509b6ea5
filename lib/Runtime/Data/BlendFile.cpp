//===- BlendFile.cpp - A blend of data as JSON ---------------------------------===//

#include "BlendFile.h"

#include "Files/Text.h"
#include "ds/Runtime/Files/MappedFile.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>
#include <string_view>

using namespace ds;
using namespace ds::rt;
using nlohmann::json;

namespace {

constexpr size_t kMaxBytes = size_t(1) << 20, kMaxDepth = 4;

/// A parse with words for what the parser lets pass: a key that comes twice, and depth without end.
class Watch {
public:
  bool operator()(int depth, json::parse_event_t event, const json &value) {
    if (!complaint.empty())
      return false;
    if (depth >= int(kMaxDepth))
      complaint = "is nested deeper than " + std::to_string(kMaxDepth);
    if (event == json::parse_event_t::object_start)
      keys.emplace_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value).second)
      complaint = "has the key " + quote(value.get<std::string>()) + " twice";
    if (event == json::parse_event_t::object_end)
      keys.pop_back();
    return complaint.empty(); // false: what the value is in is dropped
  }

  std::string complaint;

private:
  std::vector<std::set<std::string>> keys; ///< of the objects that are open
};

/// What is wrong with one source, or the source.
std::string readSource(const json &source, const std::filesystem::path &folder, DataPart &part) {
  if (!source.is_object())
    return "expects an object";
  for (const auto &[key, value] : source.items()) {
    if (key != "path" && key != "weight" && key != "token_dtype")
      return "has the unknown key " + quote(key);
    if (key == "weight" ? !value.is_number() : !value.is_string())
      return "expects " + std::string(key == "weight" ? "a number" : "text") + " for " + quote(key);
  }
  const std::string path = source.value("path", "");
  if (path.empty() || path.find('\0') != std::string::npos || !source.contains("weight"))
    return "expects the 'path' of a file or a pattern, and a 'weight'";
  if (path.ends_with(".json"))
    return "is a blend itself: " + quote(path);
  part = {folder / path, source["weight"].dump(), source.value("token_dtype", ""), {}};
  return "";
}

/// The same for the whole file.
std::string readBlend(const json &whole, const std::filesystem::path &folder, DataFiles &blend) {
  if (!whole.is_object() || whole.size() != 1 || !whole.contains("sources") || !whole["sources"].is_array() ||
      whole["sources"].empty())
    return "expects an object with the one key 'sources', a list";
  blend.isBlend = true;
  for (const json &source : whole["sources"])
    if (const std::string wrong = readSource(source, folder, blend.parts.emplace_back()); !wrong.empty())
      return "source " + std::to_string(blend.parts.size()) + ": " + wrong;
  return "";
}

} // namespace

Result<DataFiles> ds::rt::readBlendFile(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  auto corrupt = [&](const std::string &what) {
    return Error{
        ExitCode::Corrupt, quote(path) + ": " + what,
        R"(a blend is {"sources": [{"path": "a.bin", "weight": 0.7}, {"path": "b.idx", "weight": 0.3}]})"};
  };
  if (file->bytes().size() > kMaxBytes)
    return corrupt("is longer than " + std::to_string(kMaxBytes) + " bytes");
  const std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    return corrupt("has a NUL at byte " + std::to_string(nul)); // which the parser would take for the end
  Watch watch; // referred to, for the parser copies its callback
  const json whole = json::parse(
      text, [&](int depth, json::parse_event_t event, json &value) { return watch(depth, event, value); },
      /*allow_exceptions=*/false);
  if (!watch.complaint.empty())
    return corrupt(watch.complaint);
  if (whole.is_discarded())
    return corrupt("is not JSON");
  DataFiles blend;
  if (const std::string wrong = readBlend(whole, std::filesystem::path(path).parent_path(), blend);
      !wrong.empty())
    return corrupt(wrong);
  return blend;
}
