//===- GatherSchedule.cpp - When to gather sharded values, and which to keep ----===//
//
// Memory is counted per command in arrays; a candidate is judged by a simulation of the two streams, which
// costs one pass over the commands.
//
//===---------------------------------------------------------------------------===//
#include "GatherSolver.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ds::analysis {

using namespace detail;

namespace detail {

/// Stream order: by issue, then by need.
static void sortByIssue(const GatherProblem &problem, Loads &loads) {
  auto key = [&](const GatherLoad &load) {
    return std::tuple(load.issue, problem.values[load.value].uses[load.firstUse].begin, load.value);
  };
  std::sort(loads.begin(), loads.end(),
            [&](const GatherLoad &a, const GatherLoad &b) { return key(a) < key(b); });
}

GatherSolver::GatherSolver(const GatherProblem &problem, const GatherOptions &options)
    : problem(problem), evaluations(options.maxEvaluations), startSeconds(problem.seconds.size() + 1, 0) {
  std::partial_sum(problem.seconds.begin(), problem.seconds.end(), startSeconds.begin() + 1);
  findSegments();
  findGaps();
}

Loads GatherSolver::makeLoads(const std::vector<bool> &kept) const {
  Loads loads;
  std::vector<std::vector<bool>> joined(problem.values.size()); // with the use before
  for (uint32_t value = 0; value < joined.size(); ++value)
    joined[value].resize(problem.values[value].uses.size());
  for (size_t gap = 0; gap < gaps.size(); ++gap)
    for (uint32_t use = gaps[gap].firstUse + 1; kept[gap] && use <= gaps[gap].lastUse; ++use)
      joined[gaps[gap].value][use] = true;
  for (uint32_t value = 0; value < joined.size(); ++value)
    for (uint32_t use = 0; use < joined[value].size(); ++use)
      if (joined[value][use])
        loads.back().lastUse = use;
      else
        loads.push_back({value, use, use, problem.values[value].uses[use].begin});
  sortByIssue(problem, loads);
  return loads;
}

void GatherSolver::addAhead(Occupancy &occupancy, const GatherLoad &load, int64_t from, int64_t to) const {
  bool isCounted = isCarried(load); // with all that it takes, all the time
  for (int64_t command = from; command < to; ++command) {
    occupancy.bytes[command] += isCounted ? 0 : valueOf(load).bytes;
    occupancy.elements[command] += isCounted ? 0 : valueOf(load).elements;
    occupancy.ahead[command] += valueOf(load).elements;
    if (needOf(load) > occupancy.lastNeed[command])
      occupancy.lastNeed[command] = needOf(load), occupancy.last[command] = 0;
    if (needOf(load) == occupancy.lastNeed[command])
      occupancy.last[command] = std::max(occupancy.last[command], valueOf(load).elements);
  }
}

/// Everything but what load `without` takes before it is needed.
Occupancy GatherSolver::occupancyOf(const Loads &loads, size_t without) const {
  size_t count = problem.seconds.size();
  Occupancy result{problem.liveBytes, std::vector<int64_t>(count, 0), std::vector<int64_t>(count, 0),
                   std::vector<int64_t>(count, 0), std::vector<int64_t>(count, -1)};
  std::vector<int64_t> bytes(count + 1, 0), elements(count + 1, 0);
  for (const GatherLoad &load : loads) {
    size_t begin = isCarried(load) ? 0 : needOf(load), end = isCarried(load) ? count : endOf(load);
    bytes[begin] += valueOf(load).bytes, bytes[end] -= valueOf(load).bytes;
    elements[begin] += valueOf(load).elements, elements[end] -= valueOf(load).elements;
  }
  int64_t liveBytes = 0, liveElements = 0;
  for (size_t command = 0; command < count; ++command) {
    result.bytes[command] += liveBytes += bytes[command];
    result.elements[command] += liveElements += elements[command];
  }
  for (size_t index = 0; index < loads.size(); ++index)
    if (index != without)
      addAhead(result, loads[index], loads[index].issue, needOf(loads[index]));
  return result;
}

/// Whether `load` may be under way, not yet needed, while `command` runs. One gather may always be ahead, as
/// long as any may: a bound below the largest value would otherwise forbid it to be hidden at all.
bool GatherSolver::allows(const Occupancy &occupancy, int64_t command, const GatherLoad &load) const {
  int64_t elements = valueOf(load).elements, ahead = occupancy.ahead[command] + elements;
  int64_t last = needOf(load) > occupancy.lastNeed[command] ? 0 : occupancy.last[command];
  if (needOf(load) >= occupancy.lastNeed[command])
    last = std::max(last, elements);
  int64_t moreBytes = isCarried(load) ? 0 : valueOf(load).bytes, more = isCarried(load) ? 0 : elements;
  return occupancy.bytes[command] <= problem.budgetBytes - moreBytes &&
         occupancy.elements[command] <= problem.maxLiveElements - more &&
         ahead - last < problem.prefetchElements;
}

/// The first command before which `load` may be issued: not before the end of the value's use before, nor
/// before its segment.
int64_t GatherSolver::boundOf(const GatherLoad &load) const {
  const GatherValue &value = valueOf(load);
  int64_t bound = std::max(value.earliest, begins[segmentOf(value.uses[load.firstUse])]);
  return load.firstUse == 0 ? bound : std::max(bound, value.uses[load.firstUse - 1].end);
}

int64_t GatherSolver::earliestIssue(const Occupancy &occupancy, const GatherLoad &load) const {
  int64_t bound = boundOf(load), issue = needOf(load);
  while (issue > bound && allows(occupancy, issue - 1, load))
    --issue;
  return issue;
}

/// Last need first: each as late as it may be and still be there in time, with the later ones in its way. A
/// gather joins the group behind it where that one then starts earlier by no more than an issue takes.
void GatherSolver::issueLate(Loads &loads) const {
  Occupancy occupancy = occupancyOf(loads, loads.size());
  double groupStart = std::numeric_limits<double>::infinity();
  size_t groupEnd = loads.size();
  for (size_t index = loads.size(); index-- > 0;) {
    GatherLoad &load = loads[index];
    double need = startSeconds[needOf(load)], seconds = valueOf(load).seconds + problem.issueSeconds;
    double joined = std::min(need, groupStart + problem.issueSeconds) - seconds;
    bool joins = index + 1 < loads.size() && groupStart - joined <= problem.issueSeconds;
    int64_t together = std::min(commandAt(joined), needOf(load));
    if (joins && together >= earliestIssue(occupancy, load) &&
        moveGroup(occupancy, loads, index + 1, groupEnd, together)) {
      load.issue = together, groupStart = joined;
    } else {
      double alone = std::min(need, groupStart) - seconds;
      load.issue = std::max(earliestIssue(occupancy, load), std::min(commandAt(alone), needOf(load)));
      groupStart = std::max(alone, startSeconds[load.issue]), groupEnd = index + 1;
    }
    addAhead(occupancy, load, load.issue, needOf(load));
  }
}

/// The last command that starts no later than `seconds`; the first where none does.
int64_t GatherSolver::commandAt(double seconds) const {
  auto after = std::upper_bound(startSeconds.begin(), startSeconds.end(), seconds);
  return std::max<int64_t>(0, after - startSeconds.begin() - 1);
}

/// Issues loads [begin, end) at `issue` instead, if the bounds allow all of it.
bool GatherSolver::moveGroup(Occupancy &occupancy, Loads &loads, size_t begin, size_t end,
                             int64_t issue) const {
  Occupancy moved = occupancy;
  for (size_t index = begin; index < end; ++index) {
    for (int64_t command = issue; command < loads[index].issue; ++command)
      if (command < boundOf(loads[index]) || !allows(moved, command, loads[index]))
        return false;
    addAhead(moved, loads[index], issue, loads[index].issue);
  }
  for (size_t index = begin; index < end; ++index)
    loads[index].issue = issue;
  occupancy = std::move(moved);
  return true;
}

/// First need first: each as early as it may be.
void GatherSolver::issueEarly(Loads &loads) const {
  Occupancy occupancy = occupancyOf(loads, loads.size());
  int64_t before = 0;
  for (GatherLoad &load : loads) {
    int64_t need = needOf(load);
    load.issue = std::min(need, std::max(before, earliestIssue(occupancy, load)));
    addAhead(occupancy, load, load.issue, need);
    before = load.issue;
  }
}

/// The most bytes that are live at a command.
int64_t GatherSolver::peakOf(const Loads &loads) const {
  size_t count = problem.seconds.size();
  std::vector<int64_t> change(count + 1, 0);
  for (const GatherLoad &load : loads) {
    change[isCarried(load) ? 0 : load.issue] += valueOf(load).bytes;
    change[isCarried(load) ? count : endOf(load)] -= valueOf(load).bytes;
  }
  int64_t gathered = 0, peak = std::numeric_limits<int64_t>::min();
  for (size_t command = 0; command < count; ++command)
    peak = std::max(peak, problem.liveBytes[command] + (gathered += change[command]));
  return count == 0 ? 0 : peak;
}

int64_t GatherSolver::exposedNs(const Loads &sorted) const {
  return std::llround(exposedSeconds(problem, sorted) * 1e9);
}

Candidate GatherSolver::scored(Loads sorted, int64_t exposedNs) const {
  int64_t sent = 0;
  for (const GatherLoad &load : sorted)
    sent += runsOf(load) * valueOf(load).bytes;
  int64_t peak = peakOf(sorted);
  return {std::move(sorted), {exposedNs, sent, peak}};
}

Candidate GatherSolver::judge(Loads loads) const {
  sortByIssue(problem, loads);
  int64_t exposed = exposedNs(loads);
  return scored(std::move(loads), exposed);
}

std::optional<Candidate> GatherSolver::judgeBelow(Loads loads, const Candidate &known) const {
  sortByIssue(problem, loads);
  int64_t exposed = exposedNs(loads);
  if (exposed > std::get<0>(known.score))
    return std::nullopt;
  return scored(std::move(loads), exposed);
}

Candidate GatherSolver::evaluate(const std::vector<bool> &kept) const {
  Loads loads = makeLoads(kept), early = loads;
  issueLate(loads), issueEarly(early);
  Candidate late = judge(std::move(loads)), other = judge(std::move(early));
  return other.score < late.score ? other : late;
}

} // namespace detail

std::vector<double> exposedBySegment(const GatherProblem &problem, const std::vector<GatherLoad> &loads) {
  double now = 0, streamFree = 0;
  size_t next = 0, segment = 0;
  std::vector<double> ready(problem.seconds.size() + 1, 0);
  std::vector<double> waited(std::max<size_t>(1, problem.segments.size()), 0);
  for (size_t command = 0; command < problem.seconds.size(); ++command) {
    while (segment + 1 < problem.segments.size() && problem.segments[segment].end <= int64_t(command))
      ++segment;
    bool isFirst = true;
    for (; next < loads.size() && loads[next].issue <= int64_t(command); ++next, isFirst = false) {
      const GatherValue &value = problem.values[loads[next].value];
      streamFree = std::max(now, streamFree) + value.seconds + (isFirst ? problem.issueSeconds : 0);
      double &needed = ready[value.uses[loads[next].firstUse].begin];
      needed = std::max(needed, streamFree);
    }
    waited[segment] += std::max(0.0, ready[command] - now);
    now = std::max(now, ready[command]) + problem.seconds[command];
  }
  return waited;
}

double exposedSeconds(const GatherProblem &problem, const std::vector<GatherLoad> &loads) {
  std::vector<double> waited = exposedBySegment(problem, loads);
  double sum = 0;
  for (size_t segment = 0; segment < waited.size(); ++segment)
    sum += waited[segment] * double(problem.segments.empty() ? 1 : problem.segments[segment].runs);
  return sum;
}

/// Segments follow each other up to the last command.
static std::optional<std::string> findSegmentFault(const GatherProblem &problem) {
  int64_t end = 0;
  for (const GatherSegment &segment : problem.segments) {
    if (segment.end < end || segment.runs < 1)
      return "expects segments in order that run at least once, but one ends at " +
             std::to_string(segment.end) + " and runs " + std::to_string(segment.runs) + " times";
    end = segment.end;
  }
  if (!problem.segments.empty() && end != int64_t(problem.seconds.size()))
    return "expects the last segment to end at " + std::to_string(problem.seconds.size()) + ", but got " +
           std::to_string(end);
  return std::nullopt;
}

/// What a problem must satisfy for the solver's arrays.
static std::optional<std::string> findFault(const GatherProblem &problem) {
  if (problem.liveBytes.size() != problem.seconds.size())
    return "expects the live bytes of " + std::to_string(problem.seconds.size()) + " commands, but got " +
           std::to_string(problem.liveBytes.size());
  if (std::optional<std::string> fault = findSegmentFault(problem))
    return fault;
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const GatherValue &value = problem.values[index];
    int64_t after = value.earliest;
    std::string name = "value " + std::to_string(index);
    if (value.bytes < 0 || value.elements < 0 || value.seconds < 0 || value.earliest < 0)
      return name + " has a negative size or time";
    for (const GatherUse &use : value.uses) {
      if (use.begin < after || use.end <= use.begin || use.end > int64_t(problem.seconds.size()))
        return name + " is used by commands [" + std::to_string(use.begin) + ", " + std::to_string(use.end) +
               "), which are out of order or range";
      for (const GatherSegment &segment : problem.segments)
        if (use.begin < segment.end && use.end > segment.end)
          return name + " is used across the end of a segment, command " + std::to_string(segment.end);
      after = use.end;
    }
  }
  return std::nullopt;
}

Result<GatherSchedule> scheduleGathers(const GatherProblem &problem, const GatherOptions &options) {
  if (std::optional<std::string> fault = findFault(problem))
    return Error{ExitCode::Internal, *fault, ""};
  return GatherSolver(problem, options).solve();
}

} // namespace ds::analysis
