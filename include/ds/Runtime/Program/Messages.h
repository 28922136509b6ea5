//===- Messages.h - What a stage sends to another ------------------------------===//
//
// A message goes from a rank to the rank of another stage that differs from it along axes of the mesh's
// stages alone. Its ends are two commands, a send and a receive, in segments of the two stages. Each has one
// operand, the data, and two params: the partner's position along the collective's axes, and how many more
// commands of its exchange stand right behind it.
//
// An exchange is messages that do not wait for each other: commands one right behind the other, on one stream
// and along the same axes. It begins with its first command, which is done when all of its messages have
// passed; the other commands then have nothing to do. So each buffer of an exchange is live from its first
// command to its last, a sent one keeps its value for so long, and a received one shares no byte with another
// of them. Between exchanges a rank waits:
//
//   stage 0                             stage 1
//   send "activation" to 1, behind 1    recv "activation" from 0, behind 1
//   recv "gradient" from 1, behind 0    send "gradient" to 0, behind 0
//
// With `behind` 0 in all of them these would be four exchanges: in the order above they pass one after the
// other, but where stage 1 begins with its send, each stage waits in the first for the other.
//
// What verifyProgram asks of all stages together, over the executions of a step, and of an evaluation:
// - On each stream, the k-th message that a rank sends to another is the k-th that the other receives from
// it:
//   of the same name, element type and number of elements, along the same axes. None is left over.
// - Nobody waits for ever where each rank does one command after another in the order of the program,
//   whatever their streams: streams and events only take order away. So it is where memory is poisoned and in
//   the first step on a device, and NCCL asks for it where communicators share a device. Exchanges and the
//   collectives in which several stages take part are what ranks wait in.
//
// Messages may be on any stream that is for communication. Those of opposite directions between two stages
// are best one exchange, or on two streams.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_MESSAGES_H
#define DS_RUNTIME_PROGRAM_MESSAGES_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// Messages of one exchange at most.
inline constexpr uint32_t kMaxMessages = 64;

/// Commands [first, first + count).
struct Exchange {
  uint32_t first = 0, count = 0;
  uint32_t end() const { return first + count; }
};

/// Whether `command` is one end of a message. Requires known indices and enumerations.
bool isMessage(const Program &program, const Command &command);

/// Params of a message. Require a command that isMessage accepts, with both.
inline uint32_t partnerOf(const Program &program, const Command &message) {
  return static_cast<uint32_t>(program.params[message.firstParam]);
}
inline uint32_t behindOf(const Program &program, const Command &message) {
  return static_cast<uint32_t>(program.params[message.firstParam + 1]);
}

/// A command at which stages do not meet as they should: the first one in an order in which ranks can run.
struct Mismeeting {
  uint32_t command;
  uint32_t rank;                 ///< the lowest one that runs it
  std::string what;              ///< "sends 'h' to rank 1, which never receives it"
  std::optional<uint32_t> other; ///< what it meets instead, or what keeps it waiting
  uint32_t otherRank;
  std::string ofOther;
};

/// The first of them in a step and an evaluation. Of `program` the mesh, the stages' axes and schedules,
/// segments, collectives and the commands that are such, with whole exchanges, have to be valid.
std::optional<Mismeeting> findMismeeting(const Program &program);

/// The exchange of which command `index` is a message. Requires a program that verifyProgram accepts.
Exchange exchangeOf(const Program &program, uint32_t index);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_MESSAGES_H
