//===- DevicePlayers.h - The ways to play a step on an accelerator ------------------===//
//
// All put the same commands on the same streams in the same order. CheckedPlayer waits after each;
// MarkedPlayer leaves marks that say how far the device came. Those that measure stand in DeviceMeter.cpp.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_DEVICEPLAYERS_H
#define DS_LIB_RUNTIME_ENGINE_DEVICEPLAYERS_H

#include "DeviceArenas.h"
#include "DeviceCommands.h"
#include "Player/StepPlayer.h"

#include "ds/Runtime/Player/Engine.h"

namespace ds::rt {

/// What all ways need; outlives the players.
struct DeviceParts {
  Device &device;
  const Program &program;
  DeviceArenas &arenas;
  DeviceCommands &commands;
};

class DevicePlayer : public OrderedPlayer {
protected:
  explicit DevicePlayer(const DeviceParts &on, const Poison *poison = nullptr)
      : OrderedPlayer(on.program, poison), on(on) {}
  Status begin(const Execution &part) override;
  Status end(const Execution &) override { return on.device.streams().join(); }
  Error explain(const Error &error, uint32_t index) const override {
    return on.commands.explainAt(error, index);
  }
  Status issue(uint32_t index, const Execution &part) { return on.commands.issue(index, part.microBatch); }
  uint32_t streamOf(uint32_t index) const { return program.commands[index].stream; }

  const DeviceParts on;
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
