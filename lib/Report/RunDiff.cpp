//===- RunDiff.cpp - What a plan expects against what a run has taken -------------===//

#include "ds/Report/RunDiff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace ds::report {

/// A rank is told of that takes so much longer than the middle one.
static constexpr double kStraggles = 1.2;
/// Rows of the tables of layers and commands, those that are off most.
static constexpr size_t kMostRows = 12;

namespace {

/// One row: what was planned, and what each rank has measured.
struct Row {
  double planned = 0, measured = 0; ///< seconds; of ranks the mean
  double plannedBytes = 0, measuredBytes = 0;
  bool isPlanned = false, isMeasured = false;

  double off() const { return std::abs(measured - planned); }
};

using Rows = std::map<std::string, Row>;

std::string format(const char *form, auto... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

/// Names are cut behind so many characters.
constexpr size_t kMostOfName = 60;

/// The name stands in `width` columns.
std::string spellRow(const std::string &name, const Row &row, int width) {
  const std::string planned = row.isPlanned ? format("%11.6f", row.planned) : "          -";
  const std::string measured = row.isMeasured ? format("%11.6f", row.measured) : "          -";
  const bool hasRatio = row.isPlanned && row.isMeasured && row.planned > 0;
  return format("  %-*s %s %s %7s %14.0f %14.0f\n", width, name.substr(0, kMostOfName).c_str(),
                planned.c_str(), measured.c_str(),
                hasRatio ? format("%.2f", row.measured / row.planned).c_str() : "-", row.plannedBytes,
                row.measuredBytes);
}

/// The rows, those that are off most first.
std::string spellTable(const std::string &title, const Rows &rows, size_t most) {
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto &a, const auto &b) { return a.second.off() > b.second.off(); });
  const size_t shown = std::min(most, sorted.size());
  size_t longest = 36;
  for (size_t i = 0; i < shown; ++i)
    longest = std::max(longest, std::min(sorted[i].first.size(), kMostOfName));
  const int width = static_cast<int>(longest);
  std::string text = format("\n%-*s %11s %11s %7s %14s %14s\n", width + 2, title.c_str(), "planned s",
                            "measured s", "ratio", "plan's bytes", "run's bytes");
  for (size_t i = 0; i < shown; ++i)
    text += spellRow(sorted[i].first, sorted[i].second, width);
  if (sorted.size() > most)
    text += format("  and %zu more\n", sorted.size() - most);
  return text;
}

/// "h.3.attn" of "matmul h.3.attn".
std::string layerOf(const std::string &name) {
  const size_t blank = name.find(' ');
  return blank == std::string::npos ? "(no layer)" : name.substr(blank + 1);
}

double secondsOf(const StepTrace &trace, const std::string &kind) {
  double seconds = 0;
  for (const auto &[name, command] : trace.commands)
    seconds += command.kind == kind ? command.seconds : 0;
  return seconds;
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

/// All tables of one comparison.
class RunComparison {
public:
  RunComparison(const StepTrace &plan, const std::vector<StepTrace> &ranks) : plan(plan), ranks(ranks) {}

  std::string print() {
    const Rows commands = collect([](const std::string &name, const TracedCommand &) { return name; });
    std::string text =
        spellTable("by kind", collect([](const std::string &, const TracedCommand &c) { return c.kind; }),
                   commands.size());
    text += spellTable("by layer",
                       collect([](const std::string &name, const TracedCommand &) { return layerOf(name); }),
                       kMostRows);
    text += spellTable("by command", commands, kMostRows) + spellRanks();
    text +=
        "\nbytes are what plan and program expect, not measured: what goes through memory, of collectives "
        "what a rank sends\n";
    if (isScaled)
      text += "a planned command that is shown once counts as often as it has run\n";
    return text;
  }

private:
  using KeyOf = std::function<std::string(const std::string &, const TracedCommand &)>;

  Rows collect(const KeyOf &keyOf) {
    Rows rows;
    for (const auto &[name, command] : plan.commands) {
      const double times = timesOf(name, command);
      Row &row = rows[keyOf(name, command)];
      row.isPlanned = true;
      row.planned += times * command.seconds;
      row.plannedBytes += times * command.bytes;
    }
    for (const StepTrace &rank : ranks)
      for (const auto &[name, command] : rank.commands) {
        Row &row = rows[keyOf(name, command)];
        row.isMeasured = true;
        row.measured += command.seconds / static_cast<double>(ranks.size());
        row.measuredBytes += command.bytes / static_cast<double>(ranks.size());
      }
    return rows;
  }

  /// A long plan shows a segment once that runs for each micro-step.
  double timesOf(const std::string &name, const TracedCommand &command) {
    const auto found = ranks.front().commands.find(name);
    if (found == ranks.front().commands.end() || found->second.count <= command.count)
      return 1;
    isScaled = true;
    return found->second.count / command.count;
  }

  std::string spellRanks() const {
    std::string text = format("\n%-8s %11s %13s %11s\n", "rank", "compute s", "collective s", "steps");
    std::vector<double> computed;
    for (const StepTrace &rank : ranks)
      computed.push_back(secondsOf(rank, "compute"));
    const double usual = middle(computed);
    for (size_t i = 0; i < ranks.size(); ++i)
      text += format("%-8u %11.6f %13.6f %11llu\n", ranks[i].rank, computed[i],
                     secondsOf(ranks[i], "collective"), static_cast<unsigned long long>(ranks[i].steps));
    for (size_t i = 0; i < ranks.size(); ++i)
      if (usual > 0 && computed[i] > kStraggles * usual)
        text +=
            format("rank %u lags: it computes for %.6f s a step, %.2f times as long as the middle one; the "
                   "others wait for it in collectives\n",
                   ranks[i].rank, computed[i], computed[i] / usual);
    return text;
  }

  const StepTrace &plan;
  const std::vector<StepTrace> &ranks;
  bool isScaled = false;
};

} // namespace

std::string diffRun(const StepTrace &plan, const std::vector<StepTrace> &ranks, const std::string &planName,
                    const std::string &runName) {
  return "plan " + planName + "\nrun  " + runName + ": " + std::to_string(ranks.size()) + " rank" +
         (ranks.size() == 1 ? "" : "s") + ", means of a step" + (ranks.size() == 1 ? "" : " and of ranks") +
         "\n" + RunComparison(plan, ranks).print();
}

std::string diffLog(const PlanReport &plan, const std::vector<LoggedStep> &steps, const std::string &planName,
                    const std::string &logName) {
  std::vector<double> seconds;
  LoggedStep peak;
  for (size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i)
    seconds.push_back(steps[i].seconds);
  for (const LoggedStep &step : steps) {
    peak.device = std::max(peak.device, step.device);
    peak.host = std::max(peak.host, step.host);
    peak.nvme = std::max(peak.nvme, step.nvme);
  }
  std::string text = "plan " + planName + "\nrun  " + logName + ": " + std::to_string(steps.size()) +
                     " step" + (steps.size() == 1 ? "" : "s") + "\n\n" +
                     format("%-24s %16s %16s %8s\n", "", "planned", "measured", "ratio");
  const auto add = [&](const char *name, std::optional<double> planned, double measured, const char *form) {
    text += format("%-24s %16s %16s %8s\n", name, planned ? format(form, *planned).c_str() : "-",
                   format(form, measured).c_str(),
                   planned && *planned > 0 ? format("%.3f", measured / *planned).c_str() : "-");
  };
  const RankPlan &rank = plan.ranks.front();
  add("step, s (the middle one)", plan.predicted.stepSeconds, middle(seconds), "%.6f");
  add("device, bytes", static_cast<double>(rank.peakBytes), static_cast<double>(peak.device), "%.0f");
  add("host, bytes", static_cast<double>(rank.hostArena), static_cast<double>(peak.host), "%.0f");
  add("nvme, bytes", static_cast<double>(rank.nvmeArena), static_cast<double>(peak.nvme), "%.0f");
  return text;
}

} // namespace ds::report
