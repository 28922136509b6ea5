//===- GatherGaps.cpp - Where a value is kept, and why it is not -----------------===//
#include "GatherSolver.h"
#include "Residency/HeldBytes.h"

#include <algorithm>
#include <numeric>

namespace ds::analysis {

using namespace detail;

namespace detail {

void GatherSolver::findSegments() {
  int64_t begin = 0;
  std::vector<GatherSegment> given = problem.segments;
  if (given.empty())
    given.push_back({int64_t(problem.seconds.size()), 1});
  for (const GatherSegment &segment : given) {
    begins.push_back(begin);
    runs.push_back(segment.runs);
    segments.resize(segment.end, uint32_t(runs.size() - 1));
    begin = segment.end;
  }
}

/// Elements of other values that are used between two uses of one.
int64_t GatherSolver::reuseDistance(uint32_t value, uint32_t use) const {
  const GatherValue &entry = problem.values[value];
  int64_t distance = 0, begin = entry.uses[use].end, end = entry.uses[use + 1].begin;
  for (uint32_t other = 0; other < problem.values.size(); ++other)
    if (other != value &&
        std::any_of(problem.values[other].uses.begin(), problem.values[other].uses.end(),
                    [&](const GatherUse &between) { return between.begin < end && between.end > begin; }))
      distance += problem.values[other].elements;
  return distance;
}

/// The same from the value's last use in a segment to its first one when the segment runs again.
int64_t GatherSolver::loopDistance(uint32_t value, uint32_t segment) const {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1, distance = 0;
  for (const GatherUse &use : problem.values[value].uses)
    if (segmentOf(use) == segment)
      first = std::min(first, use.begin), last = std::max(last, use.end);
  for (uint32_t other = 0; other < problem.values.size() && last >= 0; ++other)
    if (other != value && std::any_of(problem.values[other].uses.begin(), problem.values[other].uses.end(),
                                      [&](const GatherUse &between) {
                                        return segmentOf(between) == segment &&
                                               (between.begin < first || between.end > last);
                                      }))
      distance += problem.values[other].elements;
  return distance;
}

int64_t GatherSolver::reuseDistance(const Gap &gap) const {
  int64_t distance = 0;
  for (uint32_t use = gap.firstUse; use < gap.lastUse; ++use)
    distance = std::max(distance, reuseDistance(gap.value, use));
  const std::vector<GatherUse> &uses = problem.values[gap.value].uses;
  if (segmentOf(uses[gap.firstUse]) != segmentOf(uses[gap.lastUse]))
    for (uint32_t segment = 0; segment < runs.size(); ++segment)
      if (runs[segment] > 1)
        distance = std::max(distance, loopDistance(gap.value, segment));
  return distance;
}

void GatherSolver::findGaps() {
  for (uint32_t value = 0; value < problem.values.size(); ++value) {
    const std::vector<GatherUse> &uses = problem.values[value].uses;
    const GatherStay stay = problem.values[value].stay;
    if (uses.empty() || stay == GatherStay::Use)
      continue;
    Gap all{value, 0, uint32_t(uses.size() - 1)};
    if (stay == GatherStay::Step && segmentOf(uses.front()) != segmentOf(uses.back()) && isAllowed(all))
      gaps.push_back(all);
    for (uint32_t use = 0; use + 1 < uses.size(); ++use)
      if (Gap gap{value, use, use + 1}; segmentOf(uses[use]) == segmentOf(uses[use + 1]) && isAllowed(gap))
        gaps.push_back(gap);
  }
}

/// The commands over which a value takes memory that is kept over `gap`, but for those over which it takes
/// memory where nothing is kept: from `issues` of its uses to their ends.
std::vector<GatherUse> GatherSolver::heldOver(const Gap &gap, const std::vector<int64_t> &issues) const {
  const std::vector<GatherUse> &uses = problem.values[gap.value].uses;
  std::vector<GatherUse> held;
  for (uint32_t use = gap.firstUse; use < gap.lastUse; ++use)
    held.push_back({uses[use].end, issues[use + 1]});
  if (isForStep(gap)) {
    held.push_back({0, issues.front()});
    held.push_back({uses.back().end, int64_t(problem.seconds.size())});
  }
  std::erase_if(held, [](const GatherUse &range) { return range.begin >= range.end; });
  return held;
}

/// Of what is to stay as much as the bounds allow beside what is in use or on its way: most time saved for a
/// byte first.
std::vector<bool> GatherSolver::keepWhatFits() const {
  Loads loads = makeLoads(std::vector<bool>(gaps.size()));
  issueLate(loads);
  std::vector<std::vector<int64_t>> issues(problem.values.size());
  for (uint32_t value = 0; value < issues.size(); ++value)
    issues[value].resize(problem.values[value].uses.size());
  for (const GatherLoad &load : loads)
    issues[load.value][load.firstUse] = load.issue;
  Occupancy taken = occupancyOf(loads, loads.size());
  HeldBytes bytes(taken.bytes), elements(taken.elements);
  auto fits = [&](const GatherValue &value, const GatherUse &range) {
    return bytes.mostIn(range.begin, range.end) <= problem.budgetBytes - value.bytes &&
           elements.mostIn(range.begin, range.end) <= problem.maxLiveElements - value.elements;
  };
  std::vector<bool> kept(gaps.size()), isKeptForStep(problem.values.size());
  for (size_t gap : orderByWorth()) {
    const GatherValue &value = problem.values[gaps[gap].value];
    const std::vector<GatherUse> held = heldOver(gaps[gap], issues[gaps[gap].value]);
    if (isKeptForStep[gaps[gap].value] ||
        !std::all_of(held.begin(), held.end(), [&](const GatherUse &range) { return fits(value, range); }))
      continue;
    for (const GatherUse &range : held)
      bytes.add(range.begin, range.end, value.bytes), elements.add(range.begin, range.end, value.elements);
    kept[gap] = true;
    if (isForStep(gaps[gap]))
      isKeptForStep[gaps[gap].value] = true;
  }
  return kept;
}

/// Time of gathers that keeping a value over `gap` saves in a step.
double GatherSolver::savedSeconds(const Gap &gap) const {
  const GatherValue &value = problem.values[gap.value];
  double gathers = 0;
  for (uint32_t use = gap.firstUse; use <= gap.lastUse; ++use)
    gathers += double(runs[segmentOf(value.uses[use])]);
  return (gathers - double(runs[segmentOf(value.uses[gap.firstUse])])) * value.seconds;
}

/// The gaps, those first over which a kept byte saves most time.
std::vector<size_t> GatherSolver::orderByWorth() const {
  std::vector<double> worth;
  for (const Gap &gap : gaps)
    worth.push_back(savedSeconds(gap) / double(std::max<int64_t>(problem.values[gap.value].bytes, 1)));
  std::vector<size_t> order(gaps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return worth[a] > worth[b]; });
  return order;
}

/// The bound that keeping what `loads` keep would exceed, and what it would take at most; bytes first.
std::optional<Regather> GatherSolver::exceededBy(const Loads &loads) const {
  int64_t bytes = problem.budgetBytes, elements = problem.maxLiveElements;
  Occupancy occupancy = occupancyOf(loads, loads.size());
  for (const GatherLoad &load : loads) {
    if (load.firstUse == load.lastUse)
      continue;
    const std::vector<GatherUse> &uses = valueOf(load).uses;
    bool carried = isCarried(load);
    uint32_t use = load.firstUse;
    int64_t end = carried ? int64_t(problem.seconds.size()) : uses[load.lastUse].begin;
    for (int64_t command = carried ? 0 : uses[use].end; command < end; ++command) {
      while (use <= load.lastUse && uses[use].end <= command)
        ++use;
      if (use <= load.lastUse && uses[use].begin <= command)
        continue; // needed, so nothing that was chosen
      bytes = std::max(bytes, occupancy.bytes[command]);
      elements = std::max(elements, occupancy.elements[command]);
    }
  }
  if (bytes > problem.budgetBytes)
    return Regather{0, GatherLimit::Bytes, bytes};
  if (elements > problem.maxLiveElements)
    return Regather{0, GatherLimit::LiveElements, elements};
  return std::nullopt;
}

/// `loads` without those of `value`, but for one of uses [first, last].
static Loads joinUses(const Loads &loads, uint32_t value, uint32_t first, uint32_t last) {
  Loads joined;
  GatherLoad whole{value, first, last, std::numeric_limits<int64_t>::max()};
  for (const GatherLoad &load : loads)
    if (load.value == value && load.firstUse >= first && load.lastUse <= last)
      whole.issue = std::min(whole.issue, load.issue);
    else
      joined.push_back(load);
  joined.push_back(whole);
  return joined;
}

std::vector<Regather> GatherSolver::explain(const Loads &loads) const {
  std::vector<Regather> result;
  for (uint32_t index = 0; index < loads.size(); ++index) {
    const GatherLoad &load = loads[index];
    if (load.firstUse == 0)
      continue;
    const std::vector<GatherUse> &uses = valueOf(load).uses;
    bool within = segmentOf(uses[load.firstUse - 1]) == segmentOf(uses[load.firstUse]);
    uint32_t first = within ? load.firstUse - 1 : 0;
    while (within && first > 0 && segmentOf(uses[first - 1]) == segmentOf(uses[first]))
      --first;
    Gap gap{load.value, first, within ? load.lastUse : uint32_t(uses.size() - 1)};
    Regather reason;
    if (int64_t distance = reuseDistance(gap); distance > problem.maxReuseElements)
      reason.limit = GatherLimit::ReuseElements, reason.wanted = distance;
    else if (auto exceeded = exceededBy(joinUses(loads, gap.value, gap.firstUse, gap.lastUse)))
      reason = *exceeded;
    reason.load = index;
    reason.isForOneSegment = within;
    result.push_back(reason);
  }
  return result;
}

} // namespace detail

std::vector<Regather> explainRegathers(const GatherProblem &problem, const GatherSchedule &schedule) {
  return GatherSolver(problem, {}).explain(schedule.loads);
}

} // namespace ds::analysis
