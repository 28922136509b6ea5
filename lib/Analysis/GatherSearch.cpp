//===- GatherSearch.cpp - Which values to keep gathered, and single moves --------===//
#include "GatherSolver.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ds::analysis::detail {

/// Sets of kept values over up to so many gaps are looked at one and all.
static constexpr size_t kMostEnumerated = 10;

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

/// The gaps of `value` over which it is kept.
std::vector<size_t> GatherSolver::keptOf(const std::vector<bool> &kept, uint32_t value) const {
  std::vector<size_t> result;
  for (size_t gap = 0; gap < gaps.size(); ++gap)
    if (kept[gap] && gaps[gap].value == value)
      result.push_back(gap);
  return result;
}

bool GatherSolver::tryFlips(std::vector<bool> &kept, const std::vector<size_t> &flips) {
  if (evaluations <= 0)
    return false;
  std::vector<bool> next = kept;
  for (size_t flip : flips)
    next[flip] = !next[flip];
  std::optional<Candidate> candidate = evaluate(next);
  if (!candidate || (best && candidate->score >= best->score))
    return false;
  best = std::move(candidate), kept = std::move(next);
  return true;
}

/// Looks at every set; the best of them are improved as long as that may take.
void GatherSolver::enumerate() {
  std::multimap<Score, Candidate> candidates; // equals in the order of their sets
  for (uint32_t subset = 0; subset < 1u << gaps.size(); ++subset) {
    std::vector<bool> kept(gaps.size());
    for (size_t gap = 0; gap < gaps.size(); ++gap)
      kept[gap] = subset >> gap & 1;
    if (std::optional<Candidate> candidate = evaluate(kept))
      candidates.emplace(candidate->score, std::move(*candidate));
  }
  for (auto &[score, candidate] : candidates) {
    improve(candidate);
    if (!best || candidate.score < best->score)
      best = std::move(candidate);
  }
}

/// As many as fit, those first that buy the most time per byte.
std::vector<bool> GatherSolver::startFull() {
  std::vector<size_t> order(gaps.size());
  std::iota(order.begin(), order.end(), 0);
  auto worth = [&](size_t gap) {
    return savedSeconds(gaps[gap]) / double(std::max<int64_t>(problem.values[gaps[gap].value].bytes, 1));
  };
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(-worth(a), a) < std::pair(-worth(b), b); });
  std::vector<bool> kept(gaps.size());
  for (size_t gap : order) {
    kept[gap] = true;
    kept[gap] = keepsWithinBounds(makeLoads(kept));
  }
  return kept;
}

void GatherSolver::search(std::vector<bool> kept) {
  std::optional<Candidate> start = evaluate(kept);
  if (!start || (best && start->score >= best->score))
    return;
  best = std::move(start);
  for (bool changed = true; changed && evaluations > 0;) {
    changed = false;
    for (size_t gap = 0; gap < gaps.size(); ++gap)
      changed |= tryFlips(kept, {gap});
    for (size_t in = 0; in < gaps.size() && !changed; ++in)
      for (uint32_t out = 0; out < problem.values.size() && !changed; ++out) {
        std::vector<size_t> flips = keptOf(kept, out);
        if (kept[in] || gaps[in].value == out || flips.empty())
          continue;
        flips.push_back(in);
        changed |= tryFlips(kept, flips);
      }
  }
}

GatherSchedule GatherSolver::solve() {
  const int64_t budget = evaluations;
  if (gaps.size() <= kMostEnumerated) {
    enumerate();
  } else {
    evaluations = budget / 2;
    search(startFull());
    evaluations = budget / 4;
    search(std::vector<bool>(gaps.size(), false));
  }
  evaluations = budget / 4;
  improve(*best), postpone(*best);
  return {best->loads, exposedSeconds(problem, best->loads), std::get<1>(best->score),
          std::get<2>(best->score)};
}

} // namespace ds::analysis::detail
