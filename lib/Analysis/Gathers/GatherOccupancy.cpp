//===- GatherOccupancy.cpp - What gathers take while each command runs -------------===//
#include "GatherOccupancy.h"

#include <algorithm>

namespace ds::analysis::detail {

GatherOccupancy::GatherOccupancy(const GatherTimes &times, const Loads &loads, size_t without)
    : times(&times), liveBytes(times.problem.liveBytes) {
  const size_t count = times.problem.seconds.size();
  liveElements.assign(count, 0), ahead.assign(count, 0), last.assign(count, 0), lastNeed.assign(count, -1);
  std::vector<int64_t> bytes(count + 1, 0), elements(count + 1, 0); // changes at each command
  for (const GatherLoad &load : loads) {
    const GatherValue &value = times.valueOf(load);
    size_t begin = times.isCarried(load) ? 0 : times.needOf(load),
           end = times.isCarried(load) ? count : times.endOf(load);
    bytes[begin] += value.bytes, bytes[end] -= value.bytes;
    elements[begin] += value.elements, elements[end] -= value.elements;
  }
  int64_t sumBytes = 0, sumElements = 0;
  for (size_t command = 0; command < count; ++command) {
    liveBytes[command] += sumBytes += bytes[command];
    liveElements[command] += sumElements += elements[command];
  }
  for (size_t index = 0; index < loads.size(); ++index)
    if (index != without)
      addAhead(loads[index], loads[index].issue, times.needOf(loads[index]));
}

void GatherOccupancy::addAhead(const GatherLoad &load, int64_t from, int64_t to) {
  const GatherValue &value = times->valueOf(load);
  const int64_t need = times->needOf(load);
  bool isCounted = times->isCarried(load); // with all that it takes, all the time
  for (int64_t command = from; command < to; ++command) {
    liveBytes[command] += isCounted ? 0 : value.bytes;
    liveElements[command] += isCounted ? 0 : value.elements;
    ahead[command] += value.elements;
    if (need > lastNeed[command])
      lastNeed[command] = need, last[command] = 0;
    if (need == lastNeed[command])
      last[command] = std::max(last[command], value.elements);
  }
}

bool GatherOccupancy::allows(int64_t command, const GatherLoad &load) const {
  const GatherProblem &problem = times->problem;
  const int64_t elements = times->valueOf(load).elements, need = times->needOf(load);
  int64_t latest = need > lastNeed[command] ? 0 : last[command];
  if (need >= lastNeed[command])
    latest = std::max(latest, elements);
  bool isCarried = times->isCarried(load);
  int64_t moreBytes = isCarried ? 0 : times->valueOf(load).bytes, more = isCarried ? 0 : elements;
  return liveBytes[command] <= problem.budgetBytes - moreBytes &&
         liveElements[command] <= problem.maxLiveElements - more &&
         ahead[command] + elements - latest < problem.prefetchElements;
}

int64_t GatherOccupancy::earliestIssue(const GatherLoad &load) const {
  int64_t bound = times->boundOf(load), issue = times->needOf(load);
  while (issue > bound && allows(issue - 1, load))
    --issue;
  return issue;
}

} // namespace ds::analysis::detail
