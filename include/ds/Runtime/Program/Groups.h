//===- Groups.h - Whom the collectives of a program meet -----------------------===//
#ifndef DS_RUNTIME_PROGRAM_GROUPS_H
#define DS_RUNTIME_PROGRAM_GROUPS_H

#include "ds/Runtime/Program/Program.h"

#include <compare>

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

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_GROUPS_H
