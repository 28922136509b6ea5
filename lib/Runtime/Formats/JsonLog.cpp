//===- JsonLog.cpp - One JSON object a step, for machines ----------------------===//

#include "ds/Runtime/Formats/JsonLog.h"

#include "Text.h"

#include <cmath>
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
    appendJsonNumber(line, *value);
    if (std::isfinite(*value))
      return;
    nonFinite += nonFinite.empty() ? "" : ",";
    nonFinite += '"' + std::string(name) + "\":\"" +
                 (std::isnan(*value) ? "nan"
                  : *value > 0       ? "inf"
                                     : "-inf") +
                 '"';
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
  std::string nonFinite;
};

} // namespace

std::string ds::rt::toJson(const StepRecord &record) {
  LineBuilder builder;
  builder.key("step");
  builder.line += std::to_string(record.step);
  builder.number("loss", record.loss);
  builder.number("grad_norm", record.gradNorm);
  builder.number("lr", record.lr);
  builder.number("loss_scale", record.lossScale);
  if (record.skipped) {
    builder.key("skipped");
    builder.line += *record.skipped ? "true" : "false";
  }
  builder.number("step_seconds", record.stepSeconds);
  builder.number("samples_per_second", record.samplesPerSecond);
  if (record.peakBytes) {
    builder.key("peak_bytes");
    builder.line += "{\"device\":" + std::to_string(record.peakBytes->device) +
                    ",\"host\":" + std::to_string(record.peakBytes->host) +
                    ",\"nvme\":" + std::to_string(record.peakBytes->nvme) + "}";
  }
  if (record.commBytes) {
    builder.key("comm_bytes");
    builder.line += std::to_string(*record.commBytes);
  }
  builder.number("comm_seconds", record.commSeconds);
  builder.number("comm_exposed_seconds", record.commExposedSeconds);
  builder.number("eval_loss", record.evalLoss);
  if (record.graph) {
    builder.key("graph");
    builder.line += *record.graph ? "true" : "false";
  }
  if (!record.graphReason.empty()) {
    builder.key("graph_reason");
    appendJsonString(builder.line, record.graphReason);
  }
  return builder.finish();
}

Result<JsonLog> JsonLog::open(const std::string &path, bool append, Warning warning) {
  Result<AppendedFile> file =
      AppendedFile::open(path, {"log", "--log-jsonl", append, /*hasLines=*/true}, std::move(warning));
  return file ? Result<JsonLog>(JsonLog(std::move(*file))) : file.error();
}

void JsonLog::write(const StepRecord &record) { file.write(toJson(record) + "\n"); }
