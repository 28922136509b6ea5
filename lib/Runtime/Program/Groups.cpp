//===- Groups.cpp - Whom the collectives of a program meet ---------------------===//
#include "ds/Runtime/Program/Groups.h"

#include <set>

namespace ds::rt {

std::vector<GroupUse> groupsOf(const Program &program) {
  std::set<GroupUse> uses;
  for (const Command &command : program.commands) {
    if (command.kind != CommandKind::Collective)
      continue;
    const AxisSet axes = program.collectives[command.callee].axes;
    if (program.mesh.size(axes) > 1)
      uses.insert({command.stream, axes});
  }
  return {uses.begin(), uses.end()};
}

} // namespace ds::rt
