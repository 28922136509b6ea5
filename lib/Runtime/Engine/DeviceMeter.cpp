//===- DeviceMeter.cpp - When the commands of a step run on an accelerator ----------===//
#include "DeviceMeter.h"

#include "Process/Clock.h"

namespace ds::rt {
namespace {

/// Has the device take the time around each command.
class StampedPlayer final : public DevicePlayer {
public:
  explicit StampedPlayer(const DeviceParts &on) : DevicePlayer(on) {}

  /// Takes the first stamp, before `play`.
  Status start() { return on.device.telemetry().stamp(numStamps++, 0); }
  /// Adds when each command of `parts`, all of which are done, ran after `originNs`, when the first stamp was
  /// taken; events of the program are not among them.
  Status addTimings(std::span<const Execution> parts, int64_t originNs, std::vector<Timing> &timings) const;

private:
  Status command(uint32_t index, const Execution &part) override;

  uint32_t numStamps = 0;
};

/// Has the device note when the work of each command runs.
class ObservedPlayer final : public DevicePlayer {
public:
  explicit ObservedPlayer(const DeviceParts &on) : DevicePlayer(on) {}

  /// Adds what the device has `observed` since `originNs`, but for commands that the host does.
  void addTimings(const std::vector<DeviceTelemetry::Observed> &observed, int64_t originNs,
                  std::vector<Timing> &timings) const;

private:
  Status begin(const Execution &part) override;
  Status command(uint32_t index, const Execution &part) override;

  std::vector<uint32_t> issued; ///< by number of observation
};

Status StampedPlayer::command(uint32_t index, const Execution &part) {
  if (Status status = on.device.telemetry().stamp(numStamps++, streamOf(index)); !status)
    return status;
  if (Status status = issue(index, part); !status)
    return status;
  return on.device.telemetry().stamp(numStamps++, streamOf(index));
}

Status StampedPlayer::addTimings(std::span<const Execution> parts, int64_t originNs,
                                 std::vector<Timing> &timings) const {
  uint32_t at = 1;
  for (const Execution &part : parts) {
    const Segment &segment = program.segments[part.segment];
    for (uint32_t i = 0; i < segment.numCommands; ++i, at += 2) {
      const Command &command = program.commands[segment.firstCommand + i];
      if (traitsOf(command.kind).isEvent())
        continue;
      const Result<double> begin = on.device.telemetry().secondsBetween(0, at),
                           end = on.device.telemetry().secondsBetween(0, at + 1);
      if (!begin || !end)
        return (begin ? end : begin).error();
      timings.push_back({segment.firstCommand + i, command.stream,
                         originNs + static_cast<int64_t>(*begin * 1e9),
                         originNs + static_cast<int64_t>(*end * 1e9)});
    }
  }
  return {};
}

/// The copies of inputs are no command's.
Status ObservedPlayer::begin(const Execution &part) {
  if (part.fills)
    on.device.telemetry().observe(DeviceTelemetry::kNoIndex);
  return DevicePlayer::begin(part);
}

Status ObservedPlayer::command(uint32_t index, const Execution &part) {
  on.device.telemetry().observe(static_cast<uint32_t>(issued.size()));
  issued.push_back(index);
  return issue(index, part);
}

void ObservedPlayer::addTimings(const std::vector<DeviceTelemetry::Observed> &observed, int64_t originNs,
                                std::vector<Timing> &timings) const {
  for (const DeviceTelemetry::Observed &each : observed)
    if (const uint32_t index = issued[each.index]; !on.commands.areHosts(index))
      timings.push_back({index, streamOf(index), originNs + each.beginNs, originNs + each.endNs});
}

} // namespace

Status DeviceMeter::play(std::span<const Execution> parts) {
  return observes && on.device.telemetry().startObserving() ? playObserved(parts) : playStamped(parts);
}

Status DeviceMeter::playStamped(std::span<const Execution> parts) {
  StampedPlayer player(on);
  const int64_t origin = nowNs();
  if (Status status = player.start(); !status)
    return on.commands.explain(status.error());
  if (Status status = player.play(parts); !status)
    return status;
  if (Status status = on.commands.finish(); !status)
    return status;
  return player.addTimings(parts, origin, timings);
}

Status DeviceMeter::playObserved(std::span<const Execution> parts) {
  const int64_t origin = nowNs();
  ObservedPlayer player(on);
  HostCommands &host = on.commands.hosts();
  host.measure(true);
  Status status = player.play(parts);
  on.device.telemetry().observe(DeviceTelemetry::kNoIndex);
  if (Status done = on.commands.finish(); status && !done)
    status = done;
  host.measure(false);
  const std::vector<DeviceTelemetry::Observed> observed = on.device.telemetry().takeObserved();
  const std::vector<Timing> hosts = host.takeTimings();
  if (!status)
    return status;
  observes = !observed.empty(); // else the next run asks events
  player.addTimings(observed, origin, timings);
  if (observes) // of the host's commands the device sees nothing
    timings.insert(timings.end(), hosts.begin(), hosts.end());
  return {};
}

} // namespace ds::rt
