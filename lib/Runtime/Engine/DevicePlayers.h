//===- DevicePlayers.h - The ways to play a step on an accelerator ------------------===//
//
// All put the same commands on the same streams in the same order. CheckedPlayer waits after each;
// MarkedPlayer leaves marks that say how far the device came. Those that measure stand in DeviceMeter.cpp.
//
// Streams meet at the ends of segments. Where a step has several lanes, those of the computing lane do
// without the others, which meet them at the step's ends alone, and in between wait for executions by events.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICEPLAYERS_H
#define DS_LIB_RUNTIME_ENGINE_DEVICEPLAYERS_H

#include "DeviceArenas.h"
#include "DeviceCommands.h"
#include "Player/StepPlayer.h"
#include "StepLanes.h"

#include "ds/Runtime/Player/Engine.h"

namespace ds::rt {

/// What all ways need; outlives the players.
struct DeviceParts {
  Device &device;
  const Program &program;
  DeviceArenas &arenas;
  DeviceCommands &commands;
  const StepLanes &lanes;
};

class DevicePlayer : public OrderedPlayer {
protected:
  explicit DevicePlayer(const DeviceParts &on, const Poison *poison = nullptr)
      : OrderedPlayer(on.program, poison), on(on) {}
  Status open(std::span<const Execution> parts) override;
  Status begin(const Execution &part) override;
  Status end(const Execution &part) override;
  Status close() override;
  Error explain(const Error &error, uint32_t index) const override {
    return on.commands.explainAt(error, index);
  }
  Status issue(uint32_t index, const Execution &part) { return on.commands.issue(index, part.microBatch); }
  /// The same with a mark that says what the stream stands in, where its next command is not the next one of
  /// the program.
  Status issueMarked(uint32_t index, const Execution &part);
  uint32_t streamOf(uint32_t index) const { return program.commands[index].stream; }

  const DeviceParts on;

private:
  std::span<const uint32_t> meeting() const;

  bool isBeside = false;     ///< what is played has several lanes
  LaneCounts numPlayed = {}; ///< executions so far
};

class CheckedPlayer final : public DevicePlayer {
public:
  /// `after` is called with each command that is done; it may be empty.
  CheckedPlayer(const DeviceParts &on, const Poison *poison, const Engine::After &after)
      : DevicePlayer(on, poison), after(after) {}

private:
  Status command(uint32_t index, const Execution &part) override;

  const Engine::After &after;
};

class MarkedPlayer final : public DevicePlayer {
public:
  /// Of a step of `executions`: marks are spread over all of them.
  MarkedPlayer(const DeviceParts &on, size_t executions) : DevicePlayer(on), executions(executions) {}

private:
  Status command(uint32_t index, const Execution &part) override;

  const size_t executions;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_DEVICEPLAYERS_H
