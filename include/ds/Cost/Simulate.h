//===- Simulate.h - When the commands of a step run ----------------------------------===//
//
// Plays a schedule over streams: a stream runs its commands one after the other in the order of the schedule,
// events order streams among each other, and transfers that are under way on one link at the same time share
// its bandwidth equally. Deterministic; the time is O(n log n) for n commands.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_SIMULATE_H
#define DS_COST_SIMULATE_H

#include <cstdint>
#include <vector>

namespace ds::cost {

/// One command as the simulation sees it.
struct SimCommand {
  /// ToHost, ToDevice: copies between a device and its host.
  enum class Kind : uint8_t { Compute, Collective, ToHost, ToDevice, Storage, Record, Wait };
  Kind kind = Kind::Compute;
  uint32_t stream = 0;
  double seconds = 0;  ///< when nothing else is under way; records and waits take none themselves
  uint32_t link = 0;   ///< what it shares with others: they run at an equal part of their speed; 0: nothing
  uint32_t event = 0;  ///< that it records or waits for
  bool onHost = false; ///< computes on the host of the device
};

/// Seconds from the start of the step. A wait's span is the time for which its stream stands.
struct SimSpan {
  double begin = 0, end = 0;
};

struct Simulation {
  std::vector<SimSpan> spans;             ///< one for each command
  double seconds = 0;                     ///< until the last command has run
  double computeSeconds = 0;              ///< in which some stream computes
  double exposedHostSeconds = 0;          ///< of these, in which the host alone does
  double exposedCommunicationSeconds = 0; ///< in which a collective is under way and nothing computes
  double exposedStorageSeconds = 0;       ///< in which storage moves, and neither of these is under way
  /// In which only copies are under way, by their way; time in which both ways are counts half for each.
  double exposedToHostSeconds = 0, exposedToDeviceSeconds = 0;
  std::vector<double> busySeconds; ///< of each stream, waits left out
};

/// Plays `commands`, each of a stream below `streams`. A wait is for the last record of its event before it
/// in the schedule; without one it does not wait. `contention` is the share of its speed that compute loses
/// while a collective is under way on another stream. Durations must be finite and at least 0.
Simulation simulate(const std::vector<SimCommand> &commands, uint32_t streams, double contention = 0);

} // namespace ds::cost

#endif // DS_COST_SIMULATE_H
