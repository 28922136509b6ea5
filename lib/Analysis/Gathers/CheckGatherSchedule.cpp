//===- CheckGatherSchedule.cpp - Looks at a gather schedule once more -----------===//
//
// Walks over loads instead of commands, and sums up bounds command by command from nothing, so that a mistake
// of the solver's bookkeeping is no mistake here.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Gathers/GatherSchedule.h"

#include <algorithm>
#include <cmath>

namespace ds::analysis {

namespace {

class GatherChecker {
public:
  GatherChecker(const GatherSchedule &schedule, const GatherProblem &problem)
      : schedule(schedule), problem(problem) {}
  std::optional<std::string> run();

private:
  std::string describe(const GatherLoad &load) const {
    return "the gather of value " + std::to_string(load.value) + " before command " +
           std::to_string(load.issue);
  }
  const std::vector<GatherUse> &usesOf(const GatherLoad &load) const {
    return problem.values[load.value].uses;
  }
  int64_t needOf(const GatherLoad &load) const { return usesOf(load)[load.firstUse].begin; }
  int64_t endOf(const GatherLoad &load) const { return usesOf(load)[load.lastUse].end; }
  /// The segment that runs `command`.
  GatherSegment segmentAt(int64_t command) const {
    for (const GatherSegment &segment : problem.segments)
      if (command < segment.end)
        return segment;
    return {int64_t(problem.seconds.size()), 1};
  }
  bool crosses(const GatherLoad &load) const {
    return segmentAt(needOf(load)).end < usesOf(load)[load.lastUse].end;
  }
  int64_t elementsBetween(const GatherLoad &load, int64_t begin, int64_t end) const;
  std::optional<std::string> checkCover() const;
  std::optional<std::string> checkOrder() const;
  std::optional<std::string> checkKept(const GatherLoad &load) const;
  std::optional<std::string> checkBounds(int64_t command) const;
  std::optional<std::string> checkFigures() const;

  const GatherSchedule &schedule;
  const GatherProblem &problem;
};

} // namespace

/// Each use of each value lies in exactly one load.
std::optional<std::string> GatherChecker::checkCover() const {
  std::vector<std::vector<int>> count(problem.values.size());
  for (size_t value = 0; value < count.size(); ++value)
    count[value].resize(problem.values[value].uses.size());
  for (const GatherLoad &load : schedule.loads) {
    if (load.value >= count.size() || load.firstUse > load.lastUse || load.lastUse >= usesOf(load).size())
      return "a load names uses " + std::to_string(load.firstUse) + " to " + std::to_string(load.lastUse) +
             " of value " + std::to_string(load.value) + ", which are not there";
    if (crosses(load) && load.lastUse - load.firstUse + 1 < usesOf(load).size())
      return describe(load) + " serves several segments, but not all uses";
    const GatherStay stay = problem.values[load.value].stay;
    if (load.firstUse < load.lastUse &&
        (stay == GatherStay::Use || (crosses(load) && stay != GatherStay::Step)))
      return describe(load) + " serves more uses than it is to stay for";
    for (uint32_t use = load.firstUse; use <= load.lastUse; ++use)
      ++count[load.value][use];
  }
  for (size_t value = 0; value < count.size(); ++value)
    for (size_t use = 0; use < count[value].size(); ++use)
      if (count[value][use] != 1)
        return "use " + std::to_string(use) + " of value " + std::to_string(value) + " lies in " +
               std::to_string(count[value][use]) + " gathers, not in one";
  return std::nullopt;
}

/// The stream executes loads in the order in which they are issued, none before it may be, none too late.
std::optional<std::string> GatherChecker::checkOrder() const {
  int64_t before = 0;
  for (const GatherLoad &load : schedule.loads) {
    int64_t earliest = problem.values[load.value].earliest;
    for (const GatherSegment &segment : problem.segments)
      if (segment.end <= needOf(load))
        earliest = std::max(earliest, segment.end);
    if (load.firstUse > 0)
      earliest = std::max(earliest, usesOf(load)[load.firstUse - 1].end);
    if (load.issue < before)
      return describe(load) + " stands after one that is issued later";
    if (load.issue < earliest)
      return describe(load) + " is issued before command " + std::to_string(earliest);
    if (load.issue > needOf(load))
      return describe(load) + " comes too late: command " + std::to_string(needOf(load)) + " needs it";
    before = load.issue;
  }
  return std::nullopt;
}

/// Elements of other values than that of `load` that commands [begin, end) use; behind the end of a segment
/// that runs again, [begin, end) wraps to its beginning.
int64_t GatherChecker::elementsBetween(const GatherLoad &load, int64_t begin, int64_t end) const {
  int64_t others = 0, start = 0, stop = problem.seconds.size();
  for (const GatherSegment &segment : problem.segments)
    if (segment.end < begin)
      start = segment.end;
  if (end < begin)
    stop = segmentAt(begin - 1).end;
  for (size_t other = 0; other < problem.values.size(); ++other) {
    bool isBetween = false;
    for (const GatherUse &between : problem.values[other].uses)
      if (end < begin)
        isBetween |=
            (between.end > begin && between.begin < stop) || (between.end > start && between.begin < end);
      else
        isBetween |= between.end > begin && between.begin < end;
    if (isBetween && other != load.value)
      others += problem.values[other].elements;
  }
  return others;
}

/// Nothing is kept over more elements than are allowed.
std::optional<std::string> GatherChecker::checkKept(const GatherLoad &load) const {
  const std::vector<GatherUse> &uses = usesOf(load);
  for (uint32_t use = load.firstUse; use < load.lastUse; ++use) {
    int64_t others = elementsBetween(load, uses[use].end, uses[use + 1].begin);
    // From the last use of a segment to its first when it runs again.
    GatherSegment segment = segmentAt(uses[use].begin);
    if (crosses(load) && segment.runs > 1 && uses[use + 1].begin >= segment.end) {
      uint32_t first = use;
      while (first > 0 && segmentAt(uses[first - 1].begin).end == segment.end)
        --first;
      others = std::max(others, elementsBetween(load, uses[use].end, uses[first].begin));
    }
    if (others > problem.maxReuseElements)
      return describe(load) + " is kept over " + std::to_string(others) + " elements, the limit is " +
             std::to_string(problem.maxReuseElements);
  }
  return std::nullopt;
}

/// What is there at `command` only by choice respects the bounds.
std::optional<std::string> GatherChecker::checkBounds(int64_t command) const {
  int64_t bytes = problem.liveBytes[command], elements = 0, ahead = 0, last = 0, lastNeed = -1;
  const GatherLoad *chosen = nullptr;
  for (const GatherLoad &load : schedule.loads) {
    bool isThere = command >= load.issue && command < endOf(load);
    if (!isThere && !crosses(load)) // what serves several segments has its place all the time
      continue;
    bytes += problem.values[load.value].bytes;
    elements += problem.values[load.value].elements;
    bool inUse = false;
    for (uint32_t use = load.firstUse; use <= load.lastUse; ++use)
      inUse |= usesOf(load)[use].begin <= command && command < usesOf(load)[use].end;
    if (!inUse)
      chosen = &load;
    if (!isThere || command >= needOf(load))
      continue;
    ahead += problem.values[load.value].elements;
    if (needOf(load) > lastNeed)
      lastNeed = needOf(load), last = 0;
    if (needOf(load) == lastNeed)
      last = std::max(last, problem.values[load.value].elements);
  }
  std::string at = " at command " + std::to_string(command) + ", the limit is ";
  if (chosen && bytes > problem.budgetBytes)
    return describe(*chosen) + " makes " + std::to_string(bytes) + " bytes live" + at +
           std::to_string(problem.budgetBytes);
  if (chosen && elements > problem.maxLiveElements)
    return describe(*chosen) + " makes " + std::to_string(elements) + " elements live" + at +
           std::to_string(problem.maxLiveElements);
  if (ahead > 0 && ahead - last >= problem.prefetchElements)
    return std::to_string(ahead) + " elements are under way" + at + std::to_string(problem.prefetchElements);
  return std::nullopt;
}

/// Bytes and exposed time are what the schedule says.
std::optional<std::string> GatherChecker::checkFigures() const {
  int64_t sent = 0;
  for (const GatherLoad &load : schedule.loads)
    sent += segmentAt(needOf(load)).runs * problem.values[load.value].bytes;
  if (sent != schedule.gatheredBytes)
    return "the gathers move " + std::to_string(sent) + " bytes, but the schedule says " +
           std::to_string(schedule.gatheredBytes);
  // One event after another: an issue, or the command that needs what was issued.
  std::vector<double> there(schedule.loads.size(), -1);
  double now = 0, waited = 0, stream = 0;
  for (int64_t command = 0; command < int64_t(problem.seconds.size()); ++command) {
    int64_t issued = 0;
    for (size_t index = 0; index < schedule.loads.size(); ++index)
      if (schedule.loads[index].issue == command)
        there[index] = stream = std::max(stream, now) + (issued++ ? 0 : problem.issueSeconds) +
                                problem.values[schedule.loads[index].value].seconds;
    double resumed = now;
    for (size_t index = 0; index < schedule.loads.size(); ++index)
      if (needOf(schedule.loads[index]) == command)
        resumed = std::max(resumed, there[index]);
    waited += double(segmentAt(command).runs) * (resumed - now);
    now = resumed + problem.seconds[command];
  }
  if (std::abs(waited - schedule.exposedSeconds) > 1e-9 * (1 + now))
    return "compute waits " + std::to_string(waited) + " s, but the schedule says " +
           std::to_string(schedule.exposedSeconds);
  return std::nullopt;
}

std::optional<std::string> GatherChecker::run() {
  if (std::optional<std::string> fault = checkCover())
    return fault;
  if (std::optional<std::string> fault = checkOrder())
    return fault;
  for (const GatherLoad &load : schedule.loads)
    if (std::optional<std::string> fault = checkKept(load))
      return fault;
  for (int64_t command = 0; command < int64_t(problem.seconds.size()); ++command)
    if (std::optional<std::string> fault = checkBounds(command))
      return fault;
  return checkFigures();
}

std::optional<std::string> check(const GatherSchedule &schedule, const GatherProblem &problem) {
  return GatherChecker(schedule, problem).run();
}

} // namespace ds::analysis
