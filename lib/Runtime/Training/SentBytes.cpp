//===- SentBytes.cpp - What a rank sends, by what for and to whom --------------------===//
#include "SentBytes.h"

#include "Process/Messages.h"

#include "ds/Runtime/Program/Collective.h"

#include <fmt/format.h>

namespace ds::rt {

uint64_t sentBytes(const Program &program, const Command &command) {
  if (command.kind != CommandKind::Collective)
    return 0;
  const Collective &collective = program.collectives[command.callee];
  const CollectiveTraits &traits = traitsOf(collective.kind);
  const uint64_t ranks = program.mesh.size(collective.axes), element = byteSize(collective.dtype);
  return traits.sentBytes(collective.elements * element * traits.count(traits.input, ranks), element, ranks);
}

SentBytes sentByStep(const Program &program) {
  SentBytes sent;
  for (const ScheduleEntry &entry : program.stages.front().schedule) {
    const Segment &segment = program.segments[entry.segment];
    for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i)
      if (const uint64_t bytes = sentBytes(program, program.commands[i])) {
        const Collective &collective = program.collectives[program.commands[i].callee];
        const std::vector<std::string> names = program.mesh.names(collective.axes);
        sent[spell(collective.kind)][fmt::format("{}", fmt::join(names, ", "))] += entry.count * bytes;
      }
  }
  return sent;
}

std::string describeSent(const SentBytes &sent) {
  std::string text;
  for (const auto &[kind, byAxes] : sent) {
    text += (text.empty() ? "sent by rank 0 in a step: " : "; ") + kind;
    bool isFirst = true;
    for (const auto &[axes, bytes] : byAxes) {
      text += fmt::format("{} {} along {}", isFirst ? "" : ",", bytesText(static_cast<double>(bytes)), axes);
      isFirst = false;
    }
  }
  return text;
}

} // namespace ds::rt
