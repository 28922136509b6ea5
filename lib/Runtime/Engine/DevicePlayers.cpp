//===- DevicePlayers.cpp - The ways to play a step on an accelerator ----------------===//
#include "DevicePlayers.h"

#include <algorithm>

namespace ds::rt {

constexpr uint32_t kMarks = 64; ///< in a graph: each takes a few microseconds of its stream

/// The streams that meet the compute stream at the ends of segments.
std::span<const uint32_t> DevicePlayer::meeting() const {
  return isBeside ? on.lanes.computing() : on.lanes.others();
}

Status DevicePlayer::open(std::span<const Execution> parts) {
  isBeside = hasLanes(parts);
  numPlayed = {};
  return isBeside ? on.device.streams().fork(on.lanes.others()) : Status();
}

Status DevicePlayer::begin(const Execution &part) {
  for (const uint32_t event : on.lanes.eventsBefore(part))
    if (Status status = on.device.streams().wait(event, on.lanes.streamOf(part.lane)); !status)
      return status;
  if (part.lane != Lane::Compute)
    return {};
  if (part.fills)
    if (Status status = on.arenas.stageInputs(part.microBatch); !status)
      return status;
  return on.device.streams().fork(meeting());
}

Status DevicePlayer::end(const Execution &part) {
  if (part.lane == Lane::Compute)
    if (Status status = on.device.streams().join(meeting()); !status)
      return status;
  if (!isBeside)
    return {};
  const std::optional<uint32_t> event = on.lanes.eventAfter(part.lane, numPlayed[size_t(part.lane)]++);
  return event ? on.device.streams().record(*event, on.lanes.streamOf(part.lane)) : Status();
}

Status DevicePlayer::close() { return isBeside ? on.device.streams().join(on.lanes.others()) : Status(); }

Status DevicePlayer::issueMarked(uint32_t index, const Execution &part) {
  if (part.lane != Lane::Compute)
    if (Status status = on.device.telemetry().mark(streamOf(index), index | DeviceTelemetry::kBegun); !status)
      return status;
  return issue(index, part);
}

Status CheckedPlayer::command(uint32_t index, const Execution &part) {
  if (Status status = issueMarked(index, part); !status)
    return status;
  Status status = on.commands.synchronize();
  return status && after ? after(index, part.microBatch) : status;
}

/// A mark every so often, and after each command that may wait for other ranks.
Status MarkedPlayer::command(uint32_t index, const Execution &part) {
  if (Status status = issueMarked(index, part); !status)
    return status;
  const Segment &segment = program.segments[part.segment];
  const auto every = static_cast<uint32_t>((segment.numCommands * executions + kMarks - 1) / kMarks);
  const bool waits = program.commands[index].kind == CommandKind::Collective && program.world > 1;
  if (!waits && (index - segment.firstCommand) % std::max(every, 1u) != 0)
    return {};
  return on.device.telemetry().mark(streamOf(index), index);
}

} // namespace ds::rt
