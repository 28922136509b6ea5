//===- Engine.h - What runs the commands of a loaded program ------------------------===//
//
// An engine has the program's arenas and its commands, bound to them: that of this processor
// (Cpu/HostEngine.h) runs them on threads, that of a device (Engine/DeviceEngine.h) puts them on the device's
// streams. Both play the same schedule (Player/StepPlayer.h). Executor is the door before them: it knows
// programs, storage and outputs, and no engine but by this interface.
//
// All calls come from the thread that loaded the program.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PLAYER_ENGINE_H
#define DS_RUNTIME_PLAYER_ENGINE_H

#include "ds/Runtime/Player/Timing.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ds::rt {

/// Whether the last run was one recorded graph, and why nothing is recorded although the user has not
/// forbidden it; empty while nothing was refused.
struct GraphRun {
  bool recorded = false;
  std::string refusal;
};

class Engine {
public:
  /// Puts the inputs of a micro-batch where `inputs` says.
  using Fill = std::function<Status(uint32_t microBatch)>;
  /// Called with each command that is done.
  using After = std::function<Status(uint32_t command, uint32_t microBatch)>;

  virtual ~Engine() = default;

  /// Where an arena begins; the host may not be able to read there, see isRemote.
  virtual std::byte *base(Space space) const = 0;
  /// Where the host writes the inputs of a micro-batch, in the program's order.
  virtual std::vector<void *> inputs(uint32_t microBatch) const = 0;
  /// Whether the host can neither read nor write what lies at `address` of an arena.
  virtual bool isRemote(const std::byte *address) const = 0;
  /// Copies between the host's memory and what is remote, at once.
  virtual Status transfer(std::byte *to, const std::byte *from, uint64_t bytes) = 0;

  /// Executes one segment with the inputs of `microBatch`.
  virtual Status run(uint32_t segment, uint32_t microBatch) = 0;
  /// The executions of the schedule in order, with `late` those that make updates which the step before has
  /// left; `fill` is called once for each micro-batch, before anything works on it.
  virtual Status runStep(const Fill &fill, bool late) = 0;
  /// The schedule with one command after another, and `after` called with each; no updates of a step before.
  virtual Status retrace(const Fill &fill, const After &after) = 0;

  /// From now on measures every command; `takeTimings` hands over what was measured since.
  virtual void measure(bool on) = 0;
  virtual std::vector<Timing> takeTimings() = 0;
  /// Nanoseconds since the last call in which the compute stream stood still for others: it waited for an
  /// event or for the other streams at a segment's end, or ran a collective itself. 0 where that is not
  /// known.
  virtual int64_t takeExposedNs() { return 0; }
  /// Nothing, of an engine that records no graphs.
  virtual GraphRun graph() const { return {}; }
};

} // namespace ds::rt

#endif // DS_RUNTIME_PLAYER_ENGINE_H
