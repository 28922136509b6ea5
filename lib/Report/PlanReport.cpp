//===- PlanReport.cpp - Figures, units, and the plan that does not fit ----------===//

#include "ds/Report/PlanReport.h"

#include <algorithm>
#include <cassert>
#include <cstdio>

namespace ds::report {

const char *spell(Category category) {
  constexpr const char *kNames[kNumCategories] = {"parameters",  "gradients",     "optimizer",
                                                  "activations", "communication", "workspace"};
  return kNames[unsigned(category)];
}

/// Whether every rank's device arena is within the limit.
static bool devicesFit(const PlanReport &report) {
  return report.memoryLimit <= 0 ||
         std::all_of(report.ranks.begin(), report.ranks.end(),
                     [&](const RankPlan &rank) { return rank.deviceArena <= report.memoryLimit; });
}

bool PlanReport::fits() const { return devicesFit(*this) && hostsFit; }

std::string PlanReport::remarkOn(const PlanChoice &choice) const {
  if (!choice.hasPass)
    return ", by rules alone";
  return isPlanningOnly ? ", planning only" : "";
}

/// What would help most, from what the peak consists of.
static std::string hintFor(const RankPlan &rank) {
  int64_t states = 0, total = 0;
  for (unsigned i = 0; i < kNumCategories; ++i) {
    total += rank.atPeak[i];
    if (i <= unsigned(Category::Optimizer))
      states += rank.atPeak[i];
  }
  auto share = [&](int64_t part) {
    return std::to_string(total > 0 ? int(100.0 * double(part) / double(total)) : 0);
  };
  int64_t optimizer = rank.atPeak[unsigned(Category::Optimizer)];
  if (states * 2 < total)
    return "activations and temporaries are " + share(total - states) +
           " % of the peak: lower train_micro_batch_size_per_gpu and raise gradient_accumulation_steps";
  if (optimizer * 2 > states)
    return "optimizer states are " + share(optimizer) +
           " % of the peak: an optimizer with fewer moments, or more ranks with zero_optimization.stage 1";
  return "parameters, gradients and optimizer states are " + share(states) +
         " % of the peak: a smaller micro-batch will not help, a smaller model or more memory will";
}

/// The refusal of a plan whose devices would do.
static Error hostsDoNotFit(const PlanReport &report) {
  const RankPlan &rank =
      *std::max_element(report.ranks.begin(), report.ranks.end(),
                        [](const RankPlan &a, const RankPlan &b) { return a.hostArena < b.hostArena; });
  return {ExitCode::DoesNotFit,
          "the plan does not fit the host: rank " + std::to_string(rank.firstRank) + " keeps " +
              formatBytes(rank.hostArena) + " (" + formatExact(rank.hostArena) + " bytes) there, beside " +
              formatBytes(rank.deviceArena) + " of the device" +
              (report.hostLimit > 0 ? ", but the limit is " + formatBytes(report.hostLimit) + " (" +
                                          formatExact(report.hostLimit) + " bytes)"
                                    : ""),
          "keep less on the host, or use more hosts"};
}

Error doesNotFit(const PlanReport &report) {
  assert(!report.fits() && !report.ranks.empty() && "only for plans that do not fit");
  if (devicesFit(report))
    return hostsDoNotFit(report);
  const RankPlan &rank =
      *std::max_element(report.ranks.begin(), report.ranks.end(),
                        [](const RankPlan &a, const RankPlan &b) { return a.deviceArena < b.deviceArena; });
  Error error;
  error.code = ExitCode::DoesNotFit;
  error.message = "the plan does not fit: rank " + std::to_string(rank.firstRank) + " needs " +
                  formatBytes(rank.deviceArena) + " (" + formatExact(rank.deviceArena) + " bytes) at " +
                  rank.peakAt + ", but the limit is " + formatBytes(report.memoryLimit) + " (" +
                  formatExact(report.memoryLimit) + " bytes)";
  if (!rank.largest.empty())
    error.message += "\n  the largest values live there:";
  for (size_t i = 0; i < std::min<size_t>(10, rank.largest.size()); ++i) {
    const LiveValue &value = rank.largest[i];
    char line[64];
    std::snprintf(line, sizeof line, "\n  %12s  %-13s  ", formatBytes(value.bytes).c_str(),
                  spell(value.category));
    error.message += line + value.name + (value.layer.empty() ? "" : " in " + value.layer);
  }
  error.hint = hintFor(rank) + " (or give more with --memory, if there is more)";
  auto isReal = [](const PlanChoice &choice) { return choice.hasPass; };
  auto first = std::find_if(report.changes.begin(), report.changes.end(), isReal);
  if (first != report.changes.end())
    error.hint += "; the cheapest change that fits: " + first->change;
  else if (!report.changes.empty())
    error.hint += "; the cheapest change that fits: " + report.changes.front().change + " (by rules" +
                  report.remarkOn(report.changes.front()) + ")";
  return error;
}

} // namespace ds::report
