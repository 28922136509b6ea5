//===- Print.cpp - Settings, notices and the reference ---------------------------------===//
//
// Everything people read about a configuration comes from the list of settings or from the key table; nothing
// is listed twice.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

#include <algorithm>

namespace ds::config {

const Setting *Config::find(std::string_view key) const {
  auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting &s) { return s.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

/// Keys of stage 3 that the file gives under another stage, where nothing is gathered for its use.
static void noteOtherStages(const Config &config, Report &report) {
  for (const Setting &setting : config.settings)
    if (config.zero.stage != 3 && setting.key.starts_with("zero_optimization.stage3_") && setting.changed &&
        setting.status == KeyStatus::Honoured)
      report.notices.push_back(setting.from + ": " + quote(setting.key) + " = " + setting.value +
                               " speaks under stage 3 only, not under stage " +
                               std::to_string(config.zero.stage));
}

/// Keys that the file gives of a block that is off.
static void noteBlocksOff(const Config &config, Report &report) {
  for (const Setting &setting : config.settings) {
    bool written = setting.origin == Origin::File || setting.origin == Origin::Set;
    if (!written || !setting.changed || setting.status == KeyStatus::Noted ||
        setting.status == KeyStatus::Detail)
      continue;
    std::optional<std::string_view> why = whyOff(config, setting);
    if (why && !why->empty())
      report.notices.push_back(setting.from + ": " + quote(setting.key) + " = " + setting.value +
                               " has no effect here: " + std::string(*why));
  }
}

/// What an "auto" that counts as absent comes to.
static std::string resolution(const Entry &entry) {
  if (entry.path == "scheduler.params.total_num_steps" && entry.value.is(Value::Kind::Null))
    return "is the number of steps of the run: ds-run --steps";
  constexpr std::string_view kDerived = "derived: ";
  std::string why;
  if (entry.from.starts_with(kDerived))
    why = " (" + entry.from.substr(kDerived.size()) + ")";
  return "resolves to " + toJson(entry.value) + why;
}

/// The notice of an "auto" that counts as absent. Of the two that settle the precision the first one says
/// what that costs.
static Notice noticeOfAuto(const Config &config, const Resolved &resolved, const Entry &entry,
                           const std::string &name) {
  std::string text = name + ": " + quote(entry.path) + " is \"auto\" and " + resolution(entry);
  const Entry *fp16 = resolved.find("fp16.enabled");
  const bool isFirst =
      entry.path == "fp16.enabled" || (entry.path == "bf16.enabled" && !(fp16 && fp16->isAuto));
  const bool isFp32 = isFirst && config.precision.model == DType::F32 && !config.precision.autocast;
  if (isFp32)
    text += ": all is fp32, twice the bytes of 16 bits, and slower; --set bf16.enabled=true";
  return {std::move(text), isFp32 || entry.path == "train_micro_batch_size_per_gpu" ||
                               entry.path == "zero_optimization.stage"};
}

void listSettings(Config &config, const Resolved &resolved, Report &report) {
  for (const Entry &entry : resolved.entries) {
    Setting setting;
    setting.key = entry.path;
    setting.value = entry.secret && !entry.value.is(Value::Kind::Null) ? "\"(set)\"" : toJson(entry.value);
    setting.origin = entry.origin;
    setting.from = entry.from;
    setting.note = entry.key->note;
    setting.status = entry.key->status;
    setting.changed = setting.value != toJson(defaultValue(*entry.key));
    setting.isAuto = entry.isAuto;
    if (entry.isAuto)
      report.notices.push_back(noticeOfAuto(config, resolved, entry, report.name));
    bool written = entry.origin == Origin::File || entry.origin == Origin::Set;
    if (setting.status == KeyStatus::Noted && written && setting.changed)
      report.notices.push_back(setting.from + ": " + quote(setting.key) + " = " + setting.value +
                               " has no effect here: " + setting.note);
    config.settings.push_back(std::move(setting));
  }
  noteOtherStages(config, report);
  noteBlocksOff(config, report);
  // Ranks that share sequences have the same parameters, and ZeRO shards over them as well.
  if (config.zero.stage > 0 && config.mesh.dp * config.mesh.sp == 1)
    report.notices.push_back({report.name +
                                  ": \"zero_optimization.stage\" = " + std::to_string(config.zero.stage) +
                                  " has no effect on one data-parallel rank, which holds the whole state",
                              /*isCostly=*/true});
}

static std::string_view spell(Origin origin) {
  switch (origin) {
  case Origin::File:
    return "file";
  case Origin::Set:
    return "--set";
  case Origin::Default:
    return "default";
  case Origin::Derived:
    return "derived";
  }
  return "";
}

static std::string printJson(const Config &config) {
  std::string out = "{";
  for (const Setting &s : config.settings) {
    out += out.size() > 1 ? ",\n " : "\n ";
    out += quote(s.key) + ": {\"value\": " + s.value + ", \"origin\": " + quote(spell(s.origin)) +
           ", \"from\": " + quote(s.from) + "}";
  }
  return out + "\n}\n";
}

/// "key = value   # origin", the comments aligned as far as the lines are short.
static std::string printLine(const Setting &setting) {
  std::string line = setting.key + " = " + setting.value;
  line.resize(std::max<size_t>(line.size() + 2, 72), ' ');
  return line + "# " + setting.from + "\n";
}

std::string printConfig(const Config &config, PrintFormat format) {
  if (format == PrintFormat::Json)
    return printJson(config);
  std::string asked, defaults;
  for (const Setting &setting : config.settings)
    (setting.origin == Origin::Default ? defaults : asked) += printLine(setting);
  if (format == PrintFormat::Text)
    return asked + (asked.empty() ? "" : "\n") + defaults;
  return asked + "# " + std::to_string(std::count(defaults.begin(), defaults.end(), '\n')) +
         " more keys have their defaults: --print-config=all\n";
}

std::string summarizeConfig(const Config &config) {
  static constexpr std::string_view kAlways[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                                 "gradient_accumulation_steps", "gradient_clipping"};
  std::string out;
  for (const Setting &s : config.settings) {
    bool always = std::find(std::begin(kAlways), std::end(kAlways), s.key) != std::end(kAlways);
    bool parameter = s.status == KeyStatus::Honoured && s.value != "null" &&
                     (s.key.starts_with("optimizer.") || s.key.starts_with("scheduler."));
    if (always || parameter || s.changed)
      out += printLine(s);
  }
  return out;
}

/// A cell of a Markdown table.
static std::string cell(std::string_view text) {
  std::string out;
  for (char c : text)
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string keyReference() {
  std::string out;
  std::string section = "-";
  for (const Key &key : keyTable()) {
    std::string head(key.path.substr(0, key.path.find('.')));
    std::string heading = key.path.find('.') == std::string_view::npos ? "Top level" : head;
    bool top = heading == "Top level";
    if (heading != section) {
      out += (out.empty() ? "### " : "\n### ") + (top ? heading : "`" + heading + "`") +
             "\n\n| key | expects | default | status | note |\n|---|---|---|---|---|\n";
      section = heading;
    }
    std::string name(top ? key.path : key.path.substr(head.size() + 1));
    std::string note(key.note);
    if (!key.only.empty())
      note += " (" + std::string(key.only) + ")";
    out += "| `" + name + "` | " + cell(spellExpected(key)) + " | `" + cell(key.fallback) + "` | " +
           std::string(spell(key.status)) + " | " + cell(note) + " |\n";
  }
  return out;
}

} // namespace ds::config
