//===- EvalData.cpp - The held-out data of a command line of ds-run ----------------===//
//
// `--eval-data valid=valid.bin --eval-data code=code.bin`: what stands before the first `=` is a name where
// it looks like one and there is no file of the whole text. A path with a directory, and a blend, have
// characters that no name has.
//
//===---------------------------------------------------------------------------===//
#include "EvalData.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

using ds::rt::EvalData;

/// "valid=FILE" or "FILE".
static EvalData parse(const std::string &text) {
  const size_t end = text.find('=');
  std::error_code error;
  if (end == std::string::npos || end == 0 || std::filesystem::exists(text, error))
    return {"", text};
  const bool isName = std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  return isName ? EvalData{text.substr(0, end), text.substr(end + 1)} : EvalData{"", text};
}

void declareEvalData(CLI::App &app, ds::rt::TrainOptions &options) {
  app.add_option_function<std::vector<std::string>>(
         "--eval-data",
         [&options](const std::vector<std::string> &texts) {
           for (const std::string &text : texts)
             options.evalData.push_back(parse(text));
           options.keep.bestOf = options.evalData.front().name;
         },
         "held-out data; several have names, and the first ones' loss says which states are best")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("[NAME=]DATA");
}

ds::Status checkEvalData(const ds::rt::TrainOptions &options) {
  const auto usage = [](std::string message, std::string hint) {
    return ds::Error{ds::ExitCode::Usage, std::move(message), std::move(hint)};
  };
  std::set<std::string> names;
  for (const EvalData &each : options.evalData) {
    if (each.data.empty())
      return usage(fmt::format("--eval-data {}=: no data follow the name", each.name), "write NAME=FILE");
    if (each.name.empty() && options.evalData.size() > 1)
      return usage(fmt::format("--eval-data {}: of several held-out data each has a name", each.data),
                   fmt::format("write --eval-data NAME={}", each.data));
    if (!names.insert(each.name).second)
      return usage(
          fmt::format("--eval-data {0}={1}: '{0}' is the name of other data before it", each.name, each.data),
          "give each a name of its own");
  }
  return {};
}
