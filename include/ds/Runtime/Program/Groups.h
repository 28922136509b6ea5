//===- Groups.h - Whom the collectives of a program meet -----------------------===//
#ifndef DS_RUNTIME_PROGRAM_GROUPS_H
#define DS_RUNTIME_PROGRAM_GROUPS_H

#include "ds/Runtime/Program/Program.h"

#include <compare>
#include <optional>
#include <vector>

namespace ds::rt {

/// A stream on which some collective runs along these axes.
struct GroupUse {
  uint32_t stream;
  AxisSet axes;

  auto operator<=>(const GroupUse &) const = default;
};

/// Those of all stages, each once and in one order on every rank; none whose groups have one rank. Requires a
/// program that verifyProgram accepts, with all its stages: a rank's own part does not say whom others meet.
std::vector<GroupUse> groupsOf(const Program &program);

/// By stream of `program`: the channel of what its ranks do together there. Channel 0 is that of the thread
/// that trains and computes, each other stream that communicates has one of its own, and others none.
/// Requires what groupsOf does.
std::vector<std::optional<uint32_t>> channelsOf(const Program &program);
/// How many channels these are; 1 without any.
uint32_t numChannels(const Program &program);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_GROUPS_H
