//===- PlanExplain.cpp - The peak of a plan, explained for people ------------------===//
#include "ds/Passes/Analysis/PlanReport.h"

#include <cstdio>

namespace ds::analysis {

static std::string inBrackets(const std::string &text) { return text.empty() ? "" : " (" + text + ")"; }

/// One value: what it is, and below it why it is there and what would change that.
static std::string describe(size_t number, const PeakValue &value) {
  char head[64];
  std::snprintf(head, sizeof head, "\n  %2zu %11s  %-13s ", number, formatBytes(value.bytes).c_str(),
                value.category.c_str());
  std::string text = head + value.name + (value.layer.empty() ? "" : " in " + value.layer);
  if (!value.type.empty())
    text += "  " + value.type;
  text += "\n       why     " + value.reason;
  if (!value.madeBy.empty())
    text += "\n       life    from " + value.madeBy + " to " + value.lastUsedBy;
  return text + "\n       change  " + value.remedy + "\n";
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
  return text;
}

} // namespace ds::analysis
