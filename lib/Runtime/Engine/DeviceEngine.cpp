//===- DeviceEngine.cpp - Runs a program on an accelerator --------------------------===//
#include "DeviceEngine.h"

#include "ds/Support/Environment.h"

namespace ds::rt {
namespace {

constexpr uint64_t kWholeStep = UINT64_MAX, kLateStep = UINT64_MAX - 1;

/// A segment that runs alone has other addresses for every micro-batch, and a graph of its own.
uint64_t keyOf(const Execution &alone) { return uint64_t(alone.microBatch) << 32 | alone.segment; }

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

DeviceEngine::DeviceEngine(Device &device, const Program &program, const DeviceEngineOptions &options,
                           std::unique_ptr<HostCommands> host)
    : device(device), program(program), checksAlways(isSet("DS_CUDA_CHECK", false)),
      arenas(device, program, options.rank, options.storage), commands(device, program, std::move(host)),
      lanes(program), graphs(device.graphs(), !checksAlways), lateStep(lateExecutionsOf(program)) {}

Result<std::unique_ptr<Engine>> DeviceEngine::load(Device &device, const Program &program,
                                                   const DeviceEngineOptions &options) {
  Result<std::unique_ptr<HostCommands>> host = HostCommands::make(program, options.rank, options.storage);
  if (!host)
    return host.error();
  std::unique_ptr<DeviceEngine> engine(new DeviceEngine(device, program, options, std::move(*host)));
  if (Status status = engine->prepare(options); !status)
    return status.error();
  return std::unique_ptr<Engine>(std::move(engine));
}

Status DeviceEngine::prepare(const DeviceEngineOptions &options) {
  const auto ends = [&](const char *phase) {
    if (options.clock)
      options.clock->end(phase);
  };
  if (Status status = device.load(program, options.rank, options.groups); !status)
    return status;
  ends("kernels");
  if (Status status = arenas.allocate(); !status)
    return status;
  ends("memory");
  uint64_t length = 0;
  for (const Execution &part : lateStep.empty() ? lanes.step() : Parts(lateStep)) // the longer one
    length += program.segments[part.segment].numCommands;
  if (Status status = graphs.limit(length); !status)
    return status;
  const auto address = [this](uint32_t buffer, uint32_t microBatch) {
    return arenas.address(buffer, microBatch);
  };
  if (Status status = commands.bind(address, arenas.base(Space::Host)); !status)
    return status;
  ends("commands");
  if (Status status = device.choose(); !status)
    return status;
  if (Status status = device.synchronize(); !status)
    return status;
  ends("choices");
  if (!options.poison)
    return {};
  checksAlways = true;
  poison = std::make_unique<Poison>(
      program, [this](const Lifetime &lifetime, uint8_t byte) { return arenas.fill(lifetime, byte); });
  return poison->start();
}

Status DeviceEngine::transfer(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (Status status = device.streams().copy(to, from, bytes); !status)
    return status;
  return device.synchronize();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status DeviceEngine::run(uint32_t segment, uint32_t microBatch) {
  const Execution alone = executeAlone(program, segment, microBatch);
  return play(keyOf(alone), {&alone, 1});
}

/// Ahead of the step, which is started as one.
Status DeviceEngine::fillAll(const Fill &fill) const {
  for (const Execution &part : lanes.step())
    if (part.fills)
      if (Status status = fill(part.microBatch); !status)
        return status;
  return {};
}

Status DeviceEngine::runStep(const Fill &fill, bool late) {
  Status status = fillAll(fill);
  return !status ? status : late ? play(kLateStep, lateStep) : play(kWholeStep, lanes.step());
}

Status DeviceEngine::retrace(const Fill &fill, const After &after) {
  Status status = fillAll(fill);
  return status ? playChecked(lanes.step(), after) : status;
}

Status DeviceEngine::play(uint64_t key, Parts parts) {
  device.telemetry().resetMarks(DeviceCommands::kNoCommand);
  graphs.forget();
  if (checksAlways || known.insert(key).second)
    return playChecked(parts, {});
  if (meter.isMeasuring())
    return meter.play(parts);
  return graphs.mayRecord() ? playGraph(key, parts) : playMarked(parts);
}

Status DeviceEngine::playChecked(Parts parts, const After &after) {
  Status status = CheckedPlayer(all, poison.get(), after).play(parts);
  return status ? commands.finish() : status;
}

Status DeviceEngine::playMarked(Parts parts) {
  Status status = MarkedPlayer(all, lanes.step().size()).play(parts);
  return status ? commands.finish() : status;
}

Status DeviceEngine::playGraph(uint64_t key, Parts parts) {
  Result<bool> recorded =
      graphs.record(key, [&] { return MarkedPlayer(all, lanes.step().size()).play(parts); });
  if (!recorded)
    return recorded.error();
  if (!*recorded)
    return playMarked(parts);
  if (Status status = graphs.launch(key); !status)
    return commands.explain(status.error());
  return commands.finish();
}

} // namespace ds::rt
