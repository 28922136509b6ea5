//===- GatherSchedule.cpp - When to gather sharded values, and which to keep ----===//
//
// The door: what a problem must be, and the simulation of the two streams that judges a candidate, which
// costs one pass over the commands.
//
//===---------------------------------------------------------------------------===//
#include "GatherSearch.h"

#include <algorithm>

namespace ds::analysis {

using namespace detail;

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
  return GatherSearch(problem, options).solve();
}

} // namespace ds::analysis
