//===- ReadRun.cpp - Traces and logs of runs -------------------------------------===//

#include "ds/Report/RunDiff.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

namespace ds::report {

using Json = nlohmann::json;

static Error corrupt(const std::string &path, const std::string &what, const std::string &hint) {
  return Error{ExitCode::Corrupt, path + ": " + what, hint};
}

static double number(const Json &object, const char *key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

static std::string text(const Json &object, const char *key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// A plan's kinds are "compute" and so on; a run's those of profilers.
static std::string kindOf(const std::string &category) {
  return category == "kernel" || category == "cpu_op" ? "compute" : category == "memcpy" ? "copy" : category;
}

bool isTrace(const std::string &text) {
  return text.find("\"traceEvents\"", 0) != std::string::npos && text.starts_with("{");
}

namespace {

/// Adds up the slices of one process.
class TraceReader {
public:
  explicit TraceReader(const Json &events) : events(events) {}

  StepTrace read() {
    for (const Json &event : events)
      if (event.is_object())
        look(event);
    StepTrace trace;
    trace.steps = std::max<size_t>(begins.size(), 1);
    const bool skipsFirst = begins.size() > 1;
    trace.steps -= skipsFirst;
    const double from = skipsFirst ? *std::next(begins.begin()) : -1e300;
    for (const Json *slice : slices)
      if (number(*slice, "ts") >= from)
        add(trace, *slice);
    for (auto &[name, command] : trace.commands) {
      const auto steps = static_cast<double>(trace.steps);
      command.count /= steps;
      command.seconds /= steps;
      command.bytes /= steps;
      command.flops /= steps;
    }
    return trace;
  }

private:
  void look(const Json &event) {
    const std::string phase = text(event, "ph");
    if (phase == "i" && text(event, "name").starts_with("step "))
      begins.insert(number(event, "ts"));
    if (phase != "X" || text(event, "cat") == "wait")
      return;
    if (slices.empty())
      process = number(event, "pid"); // of a plan of several stages the first
    if (number(event, "pid") == process)
      slices.push_back(&event);
  }
  static void add(StepTrace &trace, const Json &slice) {
    TracedCommand &command = trace.commands[text(slice, "name")];
    command.kind = kindOf(text(slice, "cat"));
    command.count += 1;
    command.seconds += number(slice, "dur") * 1e-6;
    if (const auto amounts = slice.find("args"); amounts != slice.end()) {
      command.bytes += number(*amounts, "bytes");
      command.flops += number(*amounts, "flops");
    }
  }

  const Json &events;
  std::set<double> begins; ///< of steps, in microseconds
  std::vector<const Json *> slices;
  double process = 0;
};

} // namespace

Result<StepTrace> readTrace(const std::string &text, const std::string &path) {
  static constexpr const char *kHint = "write it with --trace of ds-opt or ds-run";
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("traceEvents") || !document["traceEvents"].is_array())
    return corrupt(path, "is not a trace", kHint);
  StepTrace trace = TraceReader(document["traceEvents"]).read();
  if (trace.commands.empty())
    return corrupt(path, "is a trace without commands", kHint);
  if (const auto info = document.find("distributedInfo"); info != document.end())
    trace.rank = static_cast<uint32_t>(std::clamp(number(*info, "rank"), 0.0, 4e9));
  return trace;
}

Result<std::vector<LoggedStep>> readRunLog(const std::string &text, const std::string &path) {
  std::vector<LoggedStep> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("step"))
      return corrupt(path, "line " + std::to_string(steps.size() + 1) + " is not of a log",
                     "give what ds-run --log-jsonl has written");
    LoggedStep step;
    step.seconds = number(object, "step_seconds");
    if (const auto peak = object.find("peak_bytes"); peak != object.end()) {
      step.device = static_cast<int64_t>(number(*peak, "device"));
      step.host = static_cast<int64_t>(number(*peak, "host"));
      step.nvme = static_cast<int64_t>(number(*peak, "nvme"));
    }
    steps.push_back(step);
  }
  if (steps.empty())
    return corrupt(path, "is a log without steps", "let the run make a step");
  return steps;
}

} // namespace ds::report
