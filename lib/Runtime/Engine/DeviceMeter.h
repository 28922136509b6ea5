//===- DeviceMeter.h - When the commands of a step run on an accelerator ------------===//
//
// Where the device can note when the work itself ran, it does; else it takes the time before and after each
// command, which counts the launches too.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICEMETER_H
#define DS_LIB_RUNTIME_ENGINE_DEVICEMETER_H

#include "DevicePlayers.h"

#include "ds/Runtime/Player/Timing.h"

namespace ds::rt {

class DeviceMeter {
public:
  explicit DeviceMeter(const DeviceParts &on) : on(on) {}

  /// From now on steps are to be measured.
  void measure(bool on) { measuring = on; }
  bool isMeasuring() const { return measuring; }
  std::vector<Timing> takeTimings() { return std::exchange(timings, {}); }

  /// Plays `parts`, and keeps when each of their commands ran.
  Status play(std::span<const Execution> parts);

private:
  Status playStamped(std::span<const Execution> parts);
  Status playObserved(std::span<const Execution> parts);

  const DeviceParts on;
  bool measuring = false;
  bool observes = true; ///< the device has told of commands when it was asked to
  std::vector<Timing> timings;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICEMETER_H
