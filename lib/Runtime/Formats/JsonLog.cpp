//===- JsonLog.cpp - One JSON object a step, for machines ----------------------===//

#include "ds/Runtime/Formats/JsonLog.h"

#include "Files/OutputPath.h"
#include "Files/Text.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

namespace {

/// Builds one object; remembers which values were not finite.
class LineBuilder {
public:
  void key(const char *name) {
    line += line.size() > 1 ? ",\"" : "\"";
    line += name;
    line += "\":";
  }
  void number(const char *name, const std::optional<double> &value) {
    if (!value)
      return;
    key(name);
    finite(name, *value);
  }
  void count(const char *name, const std::optional<uint64_t> &value) {
    if (!value)
      return;
    key(name);
    line += std::to_string(*value);
  }
  void sent(const char *name, const std::optional<SentBytes> &bytes) {
    if (!bytes)
      return;
    key(name);
    const auto object = [this](const auto &map, auto &&value) {
      line += '{';
      for (const auto &[name, inside] : map) {
        line += line.back() == '{' ? "" : ",";
        appendJsonString(line, name);
        line += ':';
        value(inside);
      }
      line += '}';
    };
    object(*bytes, [&](const auto &byAxes) {
      object(byAxes, [&](uint64_t count) { line += std::to_string(count); });
    });
  }
  /// eval_loss of the first one; where they have names all of them, as "eval".
  void evaluations(std::span<const EvalLoss> losses) {
    if (losses.empty())
      return;
    number("eval_loss", losses.front().loss);
    if (losses.front().name.empty())
      return;
    key("eval");
    line += '{';
    for (const EvalLoss &each : losses) {
      line += line.back() == '{' ? "" : ",";
      appendJsonString(line, each.name);
      line += ':';
      finite("eval." + each.name, each.loss);
    }
    line += '}';
  }
  void startup(std::span<const std::pair<std::string, double>> phases) {
    if (phases.empty())
      return;
    key("startup_seconds");
    line += '{';
    for (const auto &[phase, seconds] : phases) {
      line += line.back() == '{' ? "" : ",";
      appendJsonString(line, phase);
      line += ':';
      appendJsonNumber(line, seconds);
    }
    line += '}';
  }
  std::string finish() {
    if (!nonFinite.empty()) {
      key("non_finite");
      line += '{' + nonFinite + '}';
    }
    return line + '}';
  }

  std::string line = "{";

private:
  /// The number, or null; then `name` has it in words.
  void finite(const std::string &name, double value) {
    appendJsonNumber(line, value);
    if (std::isfinite(value))
      return;
    nonFinite += nonFinite.empty() ? "" : ",";
    appendJsonString(nonFinite, name);
    nonFinite += std::isnan(value) ? ":\"nan\"" : value > 0 ? ":\"inf\"" : ":\"-inf\"";
  }

  std::string nonFinite;
};

} // namespace

std::string ds::rt::toJson(const StepRecord &record) {
  LineBuilder builder;
  builder.key("step");
  builder.line += std::to_string(record.step);
  builder.number("time", record.time);
  builder.count("samples", record.samples);
  builder.count("tokens", record.tokens);
  builder.number("loss", record.loss);
  builder.number("grad_norm", record.gradNorm);
  builder.number("lr", record.lr);
  builder.number("loss_scale", record.lossScale);
  if (record.skipped) {
    builder.key("skipped");
    builder.line += *record.skipped ? "true" : "false";
  }
  if (record.targets) {
    builder.key("targets");
    builder.line += std::to_string(*record.targets);
  }
  builder.number("step_seconds", record.stepSeconds);
  builder.number("samples_per_second", record.samplesPerSecond);
  if (record.peakBytes) {
    builder.key("peak_bytes");
    builder.line += "{\"device\":" + std::to_string(record.peakBytes->device) +
                    ",\"host\":" + std::to_string(record.peakBytes->host) +
                    ",\"nvme\":" + std::to_string(record.peakBytes->nvme) + "}";
  }
  builder.count("comm_bytes", record.commBytes);
  builder.sent("communication_bytes_by_axes", record.sentBytes);
  builder.number("comm_seconds", record.commSeconds);
  builder.number("comm_exposed_seconds", record.commExposedSeconds);
  builder.evaluations(record.evaluations);
  if (record.graph) {
    builder.key("graph");
    builder.line += *record.graph ? "true" : "false";
  }
  if (!record.graphReason.empty()) {
    builder.key("graph_reason");
    appendJsonString(builder.line, record.graphReason);
  }
  builder.startup(record.startupSeconds);
  return builder.finish();
}

/// The step of a line that toJson has written; nothing of other lines.
static std::optional<uint64_t> stepOf(std::string_view line) {
  constexpr std::string_view kBegin = "{\"step\":";
  uint64_t step = 0;
  if (!line.starts_with(kBegin) ||
      std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), step).ec != std::errc())
    return std::nullopt;
  return step;
}

Result<uint64_t> ds::rt::dropLaterSteps(const std::string &path, uint64_t step) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || standardStreamOf(info) >= 0)
    return uint64_t(0);
  std::ifstream file(path);
  uint64_t kept = 0, dropped = 0; // bytes before the first of the lines that go, and how many those are
  for (std::string line; std::getline(file, line);)
    if (dropped > 0 || stepOf(line) > step) // no step is less than any
      ++dropped;
    else
      kept += line.size() + 1;
  if (file.bad())
    return ioError("read the log", path, errno);
  if (dropped > 0 && ::truncate(path.c_str(), static_cast<off_t>(kept)) != 0)
    return ioError("cut off the log", path, errno);
  return dropped;
}

Result<JsonLog> JsonLog::open(const std::string &path, bool append, Warning warning) {
  Result<AppendedFile> file =
      AppendedFile::open(path, {"log", "--log-jsonl", append, /*hasLines=*/true}, std::move(warning));
  return file ? Result<JsonLog>(JsonLog(std::move(*file))) : file.error();
}

void JsonLog::write(const StepRecord &record) { file.write(toJson(record) + "\n"); }
