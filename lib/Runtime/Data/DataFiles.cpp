//===- DataFiles.cpp - Which files `--data` names ------------------------------===//

#include "ds/Runtime/Data/DataFiles.h"

#include "BlendFile.h"
#include "Files/Text.h"

#include <algorithm>
#include <filesystem>
#include <glob.h>
#include <string_view>

using namespace ds;
using namespace ds::rt;

static bool exists(const std::string &path) {
  std::error_code unknown;
  return std::filesystem::exists(path, unknown);
}

std::string ds::rt::pairPrefix(const std::string &path) {
  if (path.ends_with(".idx"))
    return path.substr(0, path.size() - 4);
  const std::string prefix = path.ends_with(".bin") ? path.substr(0, path.size() - 4) : path;
  return exists(prefix + ".idx") ? prefix : "";
}

/// The files of one source. A pattern may match both files of a pair: they are read by the .idx.
static Result<std::vector<std::string>> expand(const std::string &path) {
  if (exists(path) || path.find_first_of("*?[") == std::string::npos)
    return std::vector<std::string>{path};
  glob_t found = {};
  const int failure = glob(path.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (failure == GLOB_NOSPACE || failure == GLOB_ABORTED)
    return Error{ExitCode::Io, "cannot list the files of " + quote(path),
                 "check that its directories can be read"};
  std::ranges::sort(files); // bytewise: the order must not depend on the locale
  std::erase_if(files, [&, all = files](const std::string &file) {
    return file.ends_with(".bin") &&
           std::ranges::binary_search(all, file.substr(0, file.size() - 4) + ".idx");
  });
  if (files.empty())
    return Error{ExitCode::Io, quote(path) + ": no file matches",
                 "put the pattern in quotes, and check the folder"};
  return files;
}

/// Whether `text` begins as a blend does: with what may be meant as a number, and a colon.
static bool looksLikeBlend(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         text.substr(0, colon).find_first_not_of("0123456789.+-eE") == std::string_view::npos;
}

/// "W:PATH,W:PATH".
static Result<DataFiles> splitBlend(const std::string &text) {
  DataFiles blend{{}, true};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = part.find(':');
    if (!looksLikeBlend(part) || colon + 1 == part.size())
      return Error{ExitCode::Usage,
                   quote(text) + ": expects WEIGHT:PATH for each source of a blend, but got " + quote(part),
                   "paths with a comma go into a blend's file: --data blend.json"};
    blend.parts.push_back({part.substr(colon + 1), part.substr(0, colon), "", {}});
    begin = end + 1;
  }
  return blend;
}

static Result<DataFiles> parts(const std::string &text) {
  if (text.ends_with(".json"))
    return readBlendFile(text);
  if (!exists(text) && looksLikeBlend(text))
    return splitBlend(text);
  return DataFiles{{{text, "1", "", {}}}, false};
}

Result<DataFiles> ds::rt::findDataFiles(const std::string &text) {
  Result<DataFiles> data = parts(text);
  if (!data)
    return data;
  for (DataPart &part : data->parts) {
    Result<std::vector<std::string>> files = expand(part.name);
    if (!files)
      return files.error();
    part.files = std::move(*files);
  }
  return data;
}

std::vector<std::string> ds::rt::listDataFiles(const std::string &text) {
  std::vector<std::string> all = {text};
  const Result<DataFiles> data = parts(text);
  for (const DataPart &part : data ? data->parts : std::vector<DataPart>()) {
    const Result<std::vector<std::string>> files = expand(part.name);
    for (const std::string &file : files ? *files : std::vector<std::string>()) {
      if (file != text)
        all.push_back(file);
      if (const std::string prefix = pairPrefix(file); !prefix.empty())
        all.insert(all.end(), {prefix + ".idx", prefix + ".bin"});
    }
  }
  return all;
}
