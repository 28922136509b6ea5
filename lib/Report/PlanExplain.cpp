//===- PlanExplain.cpp - The peak of a plan, explained for people ------------------===//
#include "ds/Report/PlanReport.h"

#include <algorithm>
#include <cstdio>

namespace ds::report {

static std::string inBrackets(const std::string &text) { return text.empty() ? "" : " (" + text + ")"; }

/// One value: what it is, and below it why it is there and what would change that.
static std::string describe(size_t number, const PeakValue &value) {
  char head[64];
  std::snprintf(head, sizeof head, "\n  %2zu %11s  %-13s ", number, formatBytes(value.bytes).c_str(),
                spell(categoryOf(value.part)));
  std::string text = head + value.name + (value.layer.empty() ? "" : " in " + value.layer);
  if (!value.type.empty())
    text += "  " + value.type;
  text += "\n       why     " + value.reason;
  if (!value.madeBy.empty())
    text += "\n       life    from " + value.madeBy + " to " + value.lastUsedBy;
  return text + "\n       change  " + value.remedy + "\n";
}

/// Changes that were planned, beside the plan that they would change.
static std::string describeSmaller(const PlanReport &report) {
  int64_t peak = 0;
  for (const RankPlan &rank : report.ranks)
    peak = std::max(peak, rank.peakBytes);
  std::string text = report.smaller.empty() ? "" : "\nPlanned anew, each change alone:\n";
  for (const PlanChoice &choice : report.smaller) {
    char figures[96] = "";
    double ratio = static_cast<double>(choice.deviceBytes) / static_cast<double>(peak);
    std::snprintf(figures, sizeof figures, " (%+.1f %%)", 100 * (ratio - 1));
    text += "  " + choice.change + ": peak " + formatBytes(choice.deviceBytes) + figures;
    if (choice.stepSeconds && report.predicted.stepSeconds) {
      std::snprintf(figures, sizeof figures, ", %.4g s a step (%+.1f %%)", *choice.stepSeconds,
                    100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1));
      text += figures;
    }
    text += "\n";
  }
  return text;
}

std::string explainPeaks(const PlanReport &report) {
  std::string text;
  for (const RankPlan &rank : report.ranks) {
    if (!rank.explanation)
      continue;
    const PeakExplanation &peak = *rank.explanation;
    text += "\nPeak of rank" + std::string(rank.firstRank == rank.lastRank ? " " : "s ") +
            std::to_string(rank.firstRank) +
            (rank.firstRank == rank.lastRank ? "" : " to " + std::to_string(rank.lastRank)) + ": " +
            formatBytes(rank.peakBytes) + " at " + peak.op + (peak.layer.empty() ? "" : " in " + peak.layer) +
            inBrackets(peak.segment) + "\n ";
    for (unsigned category = 0; category < kNumCategories; ++category)
      text += std::string(category == 0 ? " " : ", ") + spell(Category(category)) + " " +
              formatBytes(rank.atPeak[category]);
    text += "\n";
    for (size_t index = 0; index < peak.largest.size(); ++index)
      text += describe(index + 1, peak.largest[index]);
  }
  return text + describeSmaller(report);
}

} // namespace ds::report
