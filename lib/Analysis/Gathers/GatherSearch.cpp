//===- GatherSearch.cpp - Which gathers to keep, and when to issue them -------------===//
#include "GatherSearch.h"
#include "GatherGaps.h"
#include "GatherIssues.h"
#include "GatherOccupancy.h"

#include <algorithm>

namespace ds::analysis::detail {

/// What fits is kept, and all is issued by the better of two rules.
Candidate GatherSearch::begin() const {
  const GatherGaps gaps(times);
  Loads loads = gaps.makeLoads(gaps.keepWhatFits()), early = loads;
  issueLate(times, loads), issueEarly(times, early);
  Candidate late = judge.judge(std::move(loads)), other = judge.judge(std::move(early));
  return other.score < late.score ? other : late;
}

/// Moves single gathers to where they expose least.
void GatherSearch::improve(Candidate &candidate) {
  for (bool changed = true; changed && evaluations > 0;) {
    changed = false;
    for (size_t index = 0; index < candidate.loads.size() && evaluations > 0; ++index) {
      const GatherLoad load = candidate.loads[index];
      int64_t first = GatherOccupancy(times, candidate.loads, index).earliestIssue(load),
              need = times.needOf(load);
      int64_t step = std::max<int64_t>(1, (need - first) / 8);
      for (int64_t issue = first; issue <= need; issue += step, --evaluations) {
        Loads moved = candidate.loads;
        moved[index].issue = issue;
        std::optional<Candidate> other = judge.judgeBelow(std::move(moved), candidate);
        if (!other || other->score >= candidate.score)
          continue;
        candidate = std::move(*other), changed = true;
        break;
      }
    }
  }
}

/// Up to where all loads that are issued at `issue` may be postponed.
int64_t GatherSearch::firstNeed(const Loads &loads, int64_t issue) const {
  int64_t need = times.commands();
  for (const GatherLoad &load : loads)
    if (load.issue == issue)
      need = std::min(need, times.needOf(load));
  return need;
}

/// Memory is not taken before it is needed: moves groups later while that exposes nothing more. Groups that
/// meet go on together.
void GatherSearch::postpone(Candidate &candidate) const {
  std::vector<int64_t> issues;
  for (const GatherLoad &load : candidate.loads)
    if (issues.empty() || issues.back() != load.issue)
      issues.push_back(load.issue);
  for (auto issue = issues.rbegin(); issue != issues.rend(); ++issue) {
    int64_t low = *issue, high = firstNeed(candidate.loads, low);
    while (low < high) {
      int64_t middle = low + (high - low + 1) / 2;
      Loads moved = candidate.loads;
      for (GatherLoad &load : moved)
        load.issue = load.issue == low ? middle : load.issue;
      std::optional<Candidate> other = judge.judgeBelow(std::move(moved), candidate);
      if (other && other->peakBytes() <= candidate.peakBytes())
        candidate = std::move(*other), low = middle, high = std::min(high, firstNeed(candidate.loads, low));
      else
        high = middle - 1;
    }
  }
}

GatherSchedule GatherSearch::solve() {
  Candidate best = begin();
  improve(best), postpone(best);
  return {best.loads, exposedSeconds(times.problem, best.loads), std::get<1>(best.score), best.peakBytes()};
}

} // namespace ds::analysis::detail
