//===- StepLanes.cpp - The lanes of a step on a device's streams --------------------===//
#include "StepLanes.h"

#include <algorithm>

namespace ds::rt {

StepLanes::StepLanes(const Program &program)
    : executions(executionsOf(program)), firstEvent(program.numEvents), events(executions) {
  const auto compute = static_cast<uint32_t>(std::ranges::find(program.streams, StreamKind::Compute) -
                                             program.streams.begin());
  streams.fill(compute);
  std::vector<bool> isLanes(program.streams.size());
  for (const Execution &execution : executions)
    if (const Segment &segment = program.segments[execution.segment];
        execution.lane != Lane::Compute && segment.numCommands > 0) {
      const uint32_t stream = program.commands[segment.firstCommand].stream;
      streams[static_cast<size_t>(execution.lane)] = stream;
      isLanes[stream] = true;
    }
  for (uint32_t stream = 0; stream < program.streams.size(); ++stream) {
    if (stream == compute)
      continue;
    allOthers.push_back(stream);
    if (!isLanes[stream])
      ofComputing.push_back(stream);
  }
}

std::vector<uint32_t> StepLanes::eventsBefore(const Execution &execution) const {
  std::vector<uint32_t> before;
  for (unsigned lane = 0; lane < kNumLanes; ++lane)
    if (const uint32_t count = execution.after[lane]; count > 0)
      before.push_back(*eventAfter(Lane(lane), count - 1));
  return before;
}

std::optional<uint32_t> StepLanes::eventAfter(Lane lane, uint32_t index) const {
  const std::optional<uint32_t> number = events.of(lane, index);
  return number ? std::optional(firstEvent + *number) : std::nullopt;
}

} // namespace ds::rt
