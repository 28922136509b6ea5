//===- StepPlayer.cpp - Walks the executions of a step ------------------------------===//
#include "StepPlayer.h"

#include "Poison.h"

namespace ds::rt {

Status StepPlayer::play(std::span<const Execution> parts) {
  if (Status status = open(parts); !status)
    return status;
  for (const Execution &part : parts) {
    if (Status status = begin(part); !status)
      return status;
    if (Status status = segment(part); !status)
      return status;
    if (Status status = end(part); !status)
      return status;
  }
  return close();
}

Status OrderedPlayer::segment(const Execution &part) {
  const Segment &segment = program.segments[part.segment];
  for (uint32_t t = 0; t < segment.numCommands; ++t)
    if (Status status = playCommand(part, t); !status)
      return explain(status.error(), segment.firstCommand + t);
  return {};
}

/// Command `t` of the segment, with poison before and after it.
Status OrderedPlayer::playCommand(const Execution &part, uint32_t t) {
  const uint32_t index = program.segments[part.segment].firstCommand + t;
  if (!poison)
    return command(index, part);
  if (Status status = poison->before(part.segment, t); !status)
    return status;
  if (Status status = command(index, part); !status)
    return status;
  return poison->after(part.segment, t);
}

} // namespace ds::rt
