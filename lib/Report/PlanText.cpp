//===- PlanText.cpp - The plan as tables for a terminal -------------------------===//
//
// What all ranks have in common, and of each that differs what RankText.cpp says of it.
//
//===---------------------------------------------------------------------------===//

#include "SharedLayers.h"
#include "TextPage.h"

#include "ds/Report/PlanReport.h"
#include "ds/Report/Throughput.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ds::report {

/// 1.2 G, 340.5 M, 12.0 k: counts, in powers of 1000.
static std::string count(double value) {
  const char *units[] = {"", " k", " M", " G", " T", " P", " E"};
  unsigned unit = 0;
  for (; value >= 999.95 && unit < 6; ++unit)
    value /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
  return text;
}

static void printTitle(TextPage &page, const PlanReport &report) {
  std::string mesh = "dp " + std::to_string(report.mesh.dp) + ", tp " + std::to_string(report.mesh.tp) +
                     ", pp " + std::to_string(report.mesh.pp) + ", sp " + std::to_string(report.mesh.sp);
  std::string text = "Memory plan" + (report.model.empty() ? "" : " of " + report.model) +
                     (report.target.empty() ? "" : " for " + report.target);
  page.line(page.paint(text, "1"));
  text = count(double(report.parameters)) + " parameters";
  if (report.trainedParameters)
    text += ", " + count(double(*report.trainedParameters)) + " of them trained";
  if (report.activeParameters)
    text += ", " + count(double(*report.activeParameters)) + " of them active for a token";
  if (report.flopsPerStep > 0)
    text +=
        ", " + count(report.flopsPerStep) + (report.flopsPerStep >= 999.95 ? "FLOP" : " FLOP") + " a step";
  text += report.world == 1 ? ", one rank" : ", " + std::to_string(report.world) + " ranks (" + mesh + ")";
  if (report.predicted.stepSeconds) {
    char seconds[48];
    std::snprintf(seconds, sizeof seconds, ", %.3g s a step predicted", *report.predicted.stepSeconds);
    text += seconds;
  }
  page.line(text);
  if (!report.basisReason.empty())
    page.line("basis: " + report.basis + " (" + report.basisReason + ")");
  if (!report.clusterReason.empty())
    page.line("cluster: " + report.cluster + " (" + report.clusterReason + ")");
  if (!report.programTargetReason.empty())
    page.line("target: " + report.programTarget + " (" + report.programTargetReason + ")");
}

static void printHost(TextPage &page, const PlanReport &report) {
  if (!report.host)
    return;
  page.section("Host memory");
  for (const auto &[name, bytes] : {std::pair("of the ranks of a node", report.host->nodeBytes),
                                    {"page-locked, each rank", report.host->lockedBytes}})
    page.line("  " + left(name, 24) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) +
              " bytes");
}

static void printStorage(TextPage &page, const PlanReport &report) {
  if (!report.storage)
    return;
  page.section("Moved by each rank from and to storage in a step");
  for (const auto &[name, bytes] :
       {std::pair("read", report.storage->readBytes), {"written", report.storage->writtenBytes}})
    page.line("  " + left(name, 16) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) +
              " bytes");
}

static void printCommunication(TextPage &page, const PlanReport &report) {
  if (report.predicted.communicationBytes.empty())
    return;
  const std::vector<AxesTraffic> &byAxes = report.predicted.communicationByAxes;
  const bool isAlongOne =
      !byAxes.empty() && std::all_of(byAxes.begin(), byAxes.end(),
                                     [&](const auto &entry) { return entry.axes == byAxes.front().axes; });
  page.section("Sent by each rank in a step" + (isAlongOne ? " along " + byAxes.front().axes : ""));
  int64_t total = 0;
  auto row = [&](const std::string &name, int64_t bytes) {
    page.line("  " + left(name, 16) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) +
              " bytes");
  };
  for (const auto &[kind, bytes] : report.predicted.communicationBytes) {
    row(kind, bytes), total += bytes;
    for (const AxesTraffic &entry : byAxes)
      if (!isAlongOne && entry.kind == kind)
        row("  along " + entry.axes, entry.bytes);
  }
  row("together", total);
}

/// What the predicted step is made of, and the cluster's figures behind it.
static void printTime(TextPage &page, const PlanReport &report) {
  if (!report.predicted.stepSeconds || report.predicted.terms.empty())
    return;
  double step = *report.predicted.stepSeconds;
  char text[64];
  std::snprintf(text, sizeof text, "Predicted step: %.4g s, %.4g TFLOP/s per device", step,
                report.predicted.tflopsPerDevice.value_or(0));
  page.section(text);
  for (const TimeTerm &term : report.predicted.terms) {
    std::snprintf(text, sizeof text, "%9.4g s%6.1f %%  ", term.seconds, 100 * term.seconds / step);
    page.line("  " + left(term.name, 23) + text + left(term.source, page.width() - 46));
  }
  if (std::string throughput = printThroughput(report); !throughput.empty())
    page.add("\n" + throughput);
}

/// How the largest values are had and what else could be done, where memory asked for more than keeping all.
static void printChoices(TextPage &page, const PlanReport &report) {
  bool isFree = std::all_of(report.largestValues.begin(), report.largestValues.end(),
                            [](const ResidentValue &value) { return value.way.starts_with("kept"); });
  if (isFree)
    return;
  page.section("Largest values with a choice, and what another would add to step and peak");
  bool anyRefused = false;
  for (const ResidentValue &value : report.largestValues) {
    std::string what = value.layer.empty() ? value.what : value.what + " " + value.layer;
    std::string row =
        "  " + left(what, 28) + right(formatBytes(value.bytes), 11) + "  " + left(value.way, 20);
    // Another way that is as good says nothing.
    const bool differs = std::fabs(value.nextSeconds) > 1e-9 || value.nextBytes != 0;
    if (!value.next.empty() && differs) {
      char seconds[48];
      std::snprintf(seconds, sizeof seconds, "%+.3g s, ", value.nextSeconds);
      row += value.next + (value.isNextRefused ? "*: " : ": ") + seconds + (value.nextBytes < 0 ? "-" : "+") +
             formatBytes(std::abs(value.nextBytes));
      anyRefused |= value.isNextRefused;
    }
    page.line(row);
  }
  if (anyRefused)
    page.line("  * not taken, for the configuration asks for what was done");
}

static void printNotes(TextPage &page, const PlanReport &report) {
  if (!report.notes.empty())
    page.section("Notes");
  for (const std::string &note : report.notes)
    page.line("  " + note);
}

/// ": 0.125 s a step (+3.2 %)" of a change, beside the step of the plan that does not fit.
static std::string stepOf(const PlanReport &report, const PlanChoice &choice) {
  if (!choice.stepSeconds || !report.predicted.stepSeconds)
    return "";
  char text[80];
  std::snprintf(text, sizeof text, ": %.4g s a step (%+.1f %%)", *choice.stepSeconds,
                100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1));
  return text;
}

static void printVerdict(TextPage &page, const PlanReport &report) {
  int64_t most = 0;
  for (const RankPlan &rank : report.ranks)
    most = std::max(most, rank.deviceArena);
  page.add("\n");
  if (report.memoryLimit <= 0)
    page.line("needs: " + formatBytes(most) + " (no limit is known)");
  else if (report.fits())
    page.line(page.paint("fits: " + formatBytes(most) + " of " + formatBytes(report.memoryLimit), "32"));
  else
    page.line(page.paint("does not fit: " + formatBytes(most) + " of " + formatBytes(report.memoryLimit) +
                             ", " + formatBytes(most - report.memoryLimit) + " too much",
                         "31"));
  for (const PlanChoice &choice : report.changes)
    page.line("would fit: " + choice.change + stepOf(report, choice) + ", " +
              formatBytes(choice.deviceBytes) + (choice.hasPass ? "" : ", by rules") +
              report.remarkOn(choice));
}

std::string printPlanText(const PlanReport &report, const TextOptions &options) {
  TextPage page(options);
  printTitle(page, report);
  for (const RankPlan &rank : report.ranks)
    printRank(page, report, rank);
  printHost(page, report), printStorage(page, report), printCommunication(page, report);
  printTime(page, report), printChoices(page, report);
  if (report.sharedLayers)
    printSharedLayers(page, *report.sharedLayers);
  printNotes(page, report);
  printVerdict(page, report);
  return page.take();
}

} // namespace ds::report
