//===- Config.cpp - Reading a configuration from end to end ----------------------------===//
//
// The steps in their order. Syntax errors end the reading at once; mistakes in keys and values are collected
// and told together; rules between keys are only checked when every key by itself is right, for otherwise
// they would speak about defaults that nobody asked for.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"
#include "Parser.h"
#include "ReadFile.h"
#include "ds/Config/ForeignConfig.h"

#include <unistd.h>

namespace ds::config {

/// URL-safe base64 without white space, padding optional; empty when it is not that.
static std::optional<std::string> decodeBase64(std::string_view text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0, count = 0;
  for (char c : text) {
    size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (++count == 4) {
      for (int shift : {16, 8, 0})
        out += static_cast<char>(bits >> shift & 0xFF);
      bits = count = 0;
    }
  }
  if (count == 1)
    return std::nullopt;
  for (uint32_t i = 1; i < count; ++i)
    out += static_cast<char>(bits >> (6 * count - 8 * i) & 0xFF);
  return out;
}

/// The text to read; none when there is no file at all. `name` is what messages call it.
static Result<std::optional<std::string>> findText(const ConfigSource &source, std::string &name) {
  name = source.path.empty() ? "config" : source.path;
  if (source.text)
    return source.text;
  if (source.path.empty())
    return std::optional<std::string>();
  if (::access(source.path.c_str(), F_OK) != 0)
    if (std::optional<std::string> decoded = decodeBase64(source.path);
        decoded && decoded->starts_with('{')) {
      name = "base64";
      return decoded;
    }
  Result<std::string> text = readFile(source.path, "check the path of the configuration");
  if (!text)
    return text.error();
  return std::optional<std::string>(std::move(*text));
}

/// From the checked entries to the structs; false when something is wrong.
static bool build(Config &config, Resolved &resolved, const ConfigSource &source, bool noFile,
                  Report &report) {
  config.mesh = solveMesh(resolved, source.ranks, report);
  config.mesh.ranksPerNode = source.ranksPerNode;
  if (!report.complaints.empty())
    return false;
  config.batch = solveBatch(resolved, config.mesh, {noFile, source.modelBatch}, report);
  const Entry *total = resolved.find("scheduler.params.total_num_steps");
  if (source.totalSteps && total && total->isAuto)
    resolved.derive(total->path, makeInt(*source.totalSteps), "--steps");
  deriveDefaults(resolved, report);
  fillConfig(config, resolved, report);
  checkPartitions(config, resolved, report);
  listSettings(config, resolved, report); // says what has no effect
  checkRules(config, report);
  config.notices = report.notices;
  return report.complaints.empty();
}

static Result<Config> readChecked(const ConfigSource &source) {
  Report report;
  Result<std::optional<std::string>> text = findText(source, report.name);
  if (!text)
    return text.error();
  Value root = makeObject();
  if (*text) {
    if (std::optional<ForeignConfig> foreign = findForeignConfig(**text))
      return Error{ExitCode::Invalid,
                   report.name + ": expects a configuration of DeepSpeed's, but got " + foreign->what,
                   foreign->hint};
    Result<Value> parsed = parseText(**text, report.name);
    if (!parsed)
      return parsed.error();
    root = std::move(*parsed);
  }
  if (!root.is(Value::Kind::Object))
    return Error{ExitCode::Invalid,
                 spellLocation(report.name, root.place) + ": expects an object, but got " + describe(root),
                 "a configuration starts with { and ends with }"};
  translateAliases(root, report); // of the file, so that --set overrides a key however the file spells it
  applySets(root, source.sets, report);
  translateAliases(root, report); // of --set
  Resolved resolved = resolve(root, source.allowUnknownKeys, report);
  Config config;
  if (!report.complaints.empty() || !build(config, resolved, source, !*text, report))
    return toError(report);
  return config;
}

Result<Config> readConfig(const ConfigSource &source) {
  try {
    return readChecked(source);
  } catch (const std::exception &exception) { // out of memory, and nothing else
    return Error{ExitCode::Internal, std::string("reading the configuration failed: ") + exception.what(),
                 ""};
  }
}

} // namespace ds::config
