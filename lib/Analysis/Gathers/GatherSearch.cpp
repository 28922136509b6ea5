//===- GatherSearch.cpp - Single moves of gathers ----------------------------------===//
#include "GatherSolver.h"

#include <algorithm>

namespace ds::analysis::detail {

/// Moves single gathers to where they expose least.
void GatherSolver::improve(Candidate &candidate) {
  for (bool changed = true; changed && evaluations > 0;) {
    changed = false;
    for (size_t index = 0; index < candidate.loads.size() && evaluations > 0; ++index) {
      const GatherLoad load = candidate.loads[index];
      int64_t first = earliestIssue(occupancyOf(candidate.loads, index), load), need = needOf(load);
      int64_t step = std::max<int64_t>(1, (need - first) / 8);
      for (int64_t issue = first; issue <= need; issue += step, --evaluations) {
        Loads moved = candidate.loads;
        moved[index].issue = issue;
        std::optional<Candidate> other = judgeBelow(std::move(moved), candidate);
        if (!other || other->score >= candidate.score)
          continue;
        candidate = std::move(*other), changed = true;
        break;
      }
    }
  }
}

/// Up to where all loads that are issued at `issue` may be postponed.
int64_t GatherSolver::firstNeed(const Loads &loads, int64_t issue) const {
  int64_t need = problem.seconds.size();
  for (const GatherLoad &load : loads)
    if (load.issue == issue)
      need = std::min(need, needOf(load));
  return need;
}

/// Memory is not taken before it is needed: moves groups later while that exposes nothing more. Groups that
/// meet go on together.
void GatherSolver::postpone(Candidate &candidate) {
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
      std::optional<Candidate> other = judgeBelow(std::move(moved), candidate);
      if (other && std::get<2>(other->score) <= std::get<2>(candidate.score))
        candidate = std::move(*other), low = middle, high = std::min(high, firstNeed(candidate.loads, low));
      else
        high = middle - 1;
    }
  }
}

GatherSchedule GatherSolver::solve() {
  Candidate best = evaluate(keepWhatFits());
  improve(best), postpone(best);
  return {best.loads, exposedSeconds(problem, best.loads), std::get<1>(best.score), std::get<2>(best.score)};
}

} // namespace ds::analysis::detail
