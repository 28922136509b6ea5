//===- StepPlayer.h - Walks the executions of a step --------------------------------===//
//
// A schedule is a list of executions: a segment, with the inputs of a micro-batch. Every engine goes through
// it in the same order; what a command, or a whole segment, is to it, a player says. One that has its streams
// run a segment by themselves is a StepPlayer; one that meets every command in issue order an OrderedPlayer,
// which also poisons what is not alive between two of them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PLAYER_STEPPLAYER_H
#define DS_LIB_RUNTIME_PLAYER_STEPPLAYER_H

#include "Program/Execution.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <span>

namespace ds::rt {

class Poison;

class StepPlayer {
public:
  virtual ~StepPlayer() = default;

  /// Plays `parts` one after another, until the first failure.
  Status play(std::span<const Execution> parts);

protected:
  /// Before the first of `parts`, and behind the last.
  virtual Status open(std::span<const Execution>) { return {}; }
  virtual Status close() { return {}; }
  /// Before an execution: its micro-batch gets its inputs where `part.fills`.
  virtual Status begin(const Execution &part) = 0;
  virtual Status segment(const Execution &part) = 0;
  virtual Status end(const Execution &) { return {}; }
};

class OrderedPlayer : public StepPlayer {
public:
  /// `poison` is null where nothing is poisoned; both outlive the player.
  OrderedPlayer(const Program &program, const Poison *poison) : program(program), poison(poison) {}

protected:
  Status segment(const Execution &part) final;
  /// With `poison` it returns when the command is done.
  virtual Status command(uint32_t index, const Execution &part) = 0;
  /// What a failure at program.commands[index] is reported as.
  virtual Error explain(const Error &error, uint32_t) const { return error; }

  const Program &program;

private:
  Status playCommand(const Execution &part, uint32_t t);

  const Poison *poison;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PLAYER_STEPPLAYER_H
