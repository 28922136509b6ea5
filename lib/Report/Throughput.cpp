//===- Throughput.cpp - How fast a plan trains, and what a run of it takes ----------===//
#include "ds/Report/Throughput.h"

#include <cmath>
#include <cstdio>

namespace ds::report {

/// `value` by a format of printf that has one number.
static std::string spell(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// With commas, rounded to a whole number; very large ones in short.
static std::string spellCount(double value) {
  return value < 1e15 ? formatExact(std::llround(value)) : spell("%.4g", value);
}

Throughput throughputOf(const PlanReport &report) {
  Throughput throughput;
  const double seconds = report.predicted.stepSeconds.value_or(0);
  if (seconds <= 0)
    return throughput;
  if (report.tokensPerStep > 0)
    throughput.tokensPerSecond = static_cast<double>(report.tokensPerStep) / seconds;
  const double most = report.peakFlops * seconds * report.world;
  if (most > 0 && report.modelFlops > 0) {
    throughput.modelUtilisation = report.modelFlops / most;
    throughput.hardwareUtilisation = report.hardwareFlops / most;
  }
  return throughput;
}

std::optional<RunFigures> runOf(const PlanReport &report, double stepSeconds) {
  if (!report.run || report.tokensPerStep <= 0)
    return std::nullopt;
  RunFigures figures;
  figures.steps = std::ceil(report.run->tokens / static_cast<double>(report.tokensPerStep));
  figures.seconds = figures.steps * stepSeconds;
  figures.deviceHours = figures.seconds / 3600 * report.world;
  if (report.run->pricePerHour)
    figures.cost = figures.deviceHours * *report.run->pricePerHour;
  return figures;
}

std::string spellRun(const PlanReport &report, double stepSeconds) {
  const std::optional<RunFigures> run = runOf(report, stepSeconds);
  if (!run)
    return "";
  std::string text =
      spell("%.4g tokens: ", report.run->tokens) + spellCount(run->steps) + " steps, " +
      spell("%.3g days, ", run->seconds / 86400) +
      (run->deviceHours < 100 ? spell("%.3g", run->deviceHours) : spellCount(run->deviceHours)) +
      " device-hours";
  if (run->cost)
    text += ", " + (*run->cost < 100 ? spell("%.3g", *run->cost) : spellCount(*run->cost)) + " at " +
            spell("%.4g an hour", *report.run->pricePerHour);
  return text;
}

std::string printThroughput(const PlanReport &report) {
  const Throughput throughput = throughputOf(report);
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "Throughput: " : ", ") + part; };
  if (throughput.tokensPerSecond) {
    auto rate = [](double value) { return value < 100 ? spell("%.3g", value) : spellCount(value); };
    add(rate(*throughput.tokensPerSecond) + " tokens/s");
    if (report.world > 1)
      text += " (" + rate(*throughput.tokensPerSecond / report.world) + " a device)";
  }
  if (throughput.modelUtilisation) {
    add(spell("MFU %.1f %%", 100 * *throughput.modelUtilisation));
    add(spell("HFU %.1f %%", 100 * *throughput.hardwareUtilisation) +
        spell(" of %.4g TFLOP/s a device", report.peakFlops / 1e12));
  }
  if (!text.empty())
    text += "\n";
  if (std::string run = spellRun(report, report.predicted.stepSeconds.value_or(0)); !run.empty())
    text += run + "\n";
  return text;
}

} // namespace ds::report
