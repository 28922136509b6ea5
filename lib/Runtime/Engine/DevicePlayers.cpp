//===- DevicePlayers.cpp - The ways to play a step on an accelerator ----------------===//
#include "DevicePlayers.h"

#include <algorithm>

namespace ds::rt {

constexpr uint32_t kMarks = 64; ///< in a graph: each takes a few microseconds of its stream

Status DevicePlayer::begin(const Execution &part) {
  if (part.fills)
    if (Status status = on.arenas.stageInputs(part.microBatch); !status)
      return status;
  return on.device.streams().fork();
}

Status CheckedPlayer::command(uint32_t index, const Execution &part) {
  if (Status status = issue(index, part); !status)
    return status;
  Status status = on.commands.synchronize();
  return status && after ? after(index, part.microBatch) : status;
}

/// A mark every so often, and after each command that may wait for other ranks.
Status MarkedPlayer::command(uint32_t index, const Execution &part) {
  if (Status status = issue(index, part); !status)
    return status;
  const Segment &segment = program.segments[part.segment];
  const auto every = static_cast<uint32_t>((segment.numCommands * executions + kMarks - 1) / kMarks);
  const bool waits = program.commands[index].kind == CommandKind::Collective && program.world > 1;
  if (!waits && (index - segment.firstCommand) % std::max(every, 1u) != 0)
    return {};
  return on.device.telemetry().mark(streamOf(index), index);
}

} // namespace ds::rt
