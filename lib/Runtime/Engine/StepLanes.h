//===- StepLanes.h - The lanes of a step on a device's streams ----------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_STEPLANES_H
#define DS_LIB_RUNTIME_ENGINE_STEPLANES_H

#include "Program/Execution.h"

namespace ds::rt {

class StepLanes {
public:
  /// Of `program`, which has one stage.
  explicit StepLanes(const Program &program);

  /// The executions of its step.
  std::span<const Execution> step() const { return executions; }

  /// All streams but the compute stream, and those of them that no other lane of the step runs on.
  std::span<const uint32_t> others() const { return allOthers; }
  std::span<const uint32_t> computing() const { return ofComputing; }
  /// The compute stream, or that of another lane.
  uint32_t streamOf(Lane lane) const { return streams[static_cast<size_t>(lane)]; }

  /// Events of a device (Device.h) that `execution` of the step waits for.
  std::vector<uint32_t> eventsBefore(const Execution &execution) const;
  /// The event that execution `index` of a lane records at its end, or nothing.
  std::optional<uint32_t> eventAfter(Lane lane, uint32_t index) const;

private:
  const std::vector<Execution> executions;
  const uint32_t firstEvent; ///< behind the program's
  const LaneEvents events;
  std::array<uint32_t, kNumLanes> streams{};
  std::vector<uint32_t> allOthers, ofComputing;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_STEPLANES_H
