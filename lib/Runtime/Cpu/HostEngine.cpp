//===- HostEngine.cpp - Runs a program on this processor ----------------------------===//
//
// The order of loading is the order of what a user can do about a failure: the processor (another program),
// the memory (another plan), the libraries (another machine).
//
//===---------------------------------------------------------------------------===//
#include "HostEngine.h"

#include "Player/StepPlayer.h"
#include "Staging.h"
#include "StartTeam.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <cstring>

namespace ds::rt {
namespace {

/// Fills the inputs of an execution, as far as it asks for them, and makes its micro-batch the current one.
Status beginOn(HostTasks &tasks, const Engine::Fill &fill, const Execution &part) {
  if (part.fills && fill)
    if (Status status = fill(part.microBatch); !status)
      return status;
  tasks.setMicroBatch(part.microBatch);
  return {};
}

/// Every stream on its own thread, and every lane of a step beside the others.
class StreamsPlayer final : public StepPlayer {
public:
  StreamsPlayer(HostTasks &tasks, StreamWorkers &workers, const Engine::Fill &fill)
      : tasks(tasks), workers(workers), fill(fill) {}

  /// The step of `lanes`.
  Status playLanes(LaneWorkers &lanes) {
    return lanes.play([this](const Execution &part) { return play({&part, 1}); });
  }

private:
  Status begin(const Execution &part) override { return beginOn(tasks, fill, part); }
  Status segment(const Execution &part) override { return workers.run(part.segment); }

  HostTasks &tasks;
  StreamWorkers &workers;
  const Engine::Fill &fill;
};

/// All commands on the calling thread.
class CallerPlayer final : public OrderedPlayer {
public:
  CallerPlayer(const Program &program, const Poison *poison, HostTasks &tasks, const Engine::Fill &fill,
               const Engine::After &after)
      : OrderedPlayer(program, poison), tasks(tasks), fill(fill), after(after) {}

private:
  Status begin(const Execution &part) override { return beginOn(tasks, fill, part); }
  Status command(uint32_t index, const Execution &part) override {
    Status status = tasks.runHere(index);
    return status && after ? after(index, part.microBatch) : status;
  }

  HostTasks &tasks;
  const Engine::Fill &fill;
  const Engine::After &after;
};

} // namespace

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

HostEngine::HostEngine(const Program &program, const HostEngineOptions &options)
    : program(program), rank(options.rank), storage(options.storage), tasks(program),
      step(executionsOf(program)), lateStep(lateExecutionsOf(program)) {}

Result<std::unique_ptr<Engine>> HostEngine::load(const Program &program, const HostEngineOptions &options) {
  if (program.target != "cpu")
    return Error{ExitCode::Device, fmt::format("the program is made for {}, not for the CPU", program.target),
                 "run it with --device cuda, or compile with --target cpu"};
  std::unique_ptr<HostEngine> engine(new HostEngine(program, options));
  if (Status status = engine->prepare(options); !status)
    return status.error();
  return std::unique_ptr<Engine>(std::move(engine));
}

Status HostEngine::prepare(const HostEngineOptions &options) {
  Result<KernelImage> opened = KernelImage::open(program);
  if (!opened)
    return opened.error();
  image = std::move(*opened);
  const ArenaBytes &arenas = program.stages.front().arenas;
  for (auto [arena, bytes, what] :
       {std::tuple(&device, arenas.device, "device"), {&host, arenas.host, "host"}}) {
    Result<Arena> created = Arena::create(bytes, what);
    if (!created)
      return created.error();
    *arena = std::move(*created);
  }
  if (Status status = startTeam(program.threads); !status)
    return status;
  if (storage)
    useStaging(program, rank, host.data(), *storage);
  for (uint32_t i = 0; i < program.commands.size(); ++i)
    if (Status status = bind(options, i); !status)
      return status;
  return options.poison ? startPoison() : startWorkers(options);
}

/// Binds a command for every place that its operands have over micro-batches.
Status HostEngine::bind(const HostEngineOptions &options, uint32_t command) {
  for (uint32_t m = 0; m < numBindings(program, command); ++m) {
    const Binding binding{program,
                          image,
                          [this, m](uint32_t buffer) { return address(buffer, m); },
                          options.isa,
                          options.communicator,
                          storage};
    Result<std::unique_ptr<Task>> task = bindCommand(binding, command);
    if (!task)
      return task.error();
    tasks.add(command, std::move(*task));
  }
  return {};
}

Status HostEngine::startWorkers(const HostEngineOptions &options) {
  if (program.streams.size() <= 1)
    return {};
  workers = std::make_unique<StreamWorkers>(
      program, [this](uint32_t command) { return tasks.run(command); },
      StreamWorkers::Overlapped{[this](uint32_t command) { return tasks.begin(command); },
                                [this](uint32_t command) { return tasks.advance(command); },
                                [this](uint32_t command) { return tasks.finish(command); }},
      options.failed);
  if (Status status = workers->start(); !status)
    return status;
  return hasLanes(step) ? startLanes(options) : Status();
}

Status HostEngine::startLanes(const HostEngineOptions &options) {
  lanes = std::make_unique<LaneWorkers>(
      step, [this](const Execution &execution) { return runAlone(execution); }, options.failed);
  return lanes->start();
}

/// All commands of an execution, on the thread of its lane.
Status HostEngine::runAlone(const Execution &execution) {
  const Segment &segment = program.segments[execution.segment];
  for (uint32_t i = 0; i < segment.numCommands; ++i)
    if (Status status = tasks.run(segment.firstCommand + i, execution.microBatch); !status)
      return status;
  return {};
}

Status HostEngine::startPoison() {
  poison = std::make_unique<Poison>(program, [this](const Lifetime &lifetime, uint8_t byte) -> Status {
    if (lifetime.space == Space::Nvme)
      return {}; // what a step reads there it has written, or it is a state, which gets a value
    std::memset(base(lifetime.space) + lifetime.offset, byte, lifetime.bytes);
    return {};
  });
  return poison->start();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::byte *HostEngine::base(Space space) const {
  return space == Space::Nvme ? storage->addresses().base() : (space == Space::Device ? device : host).data();
}

std::byte *HostEngine::address(uint32_t buffer, uint32_t microBatch) const {
  const Buffer &b = program.buffers[buffer];
  return base(b.space) + windowOffset(b, program.mesh, rank, microBatch);
}

std::vector<void *> HostEngine::inputs(uint32_t microBatch) const {
  std::vector<void *> addresses;
  for (const Input &input : program.inputs)
    addresses.push_back(address(input.buffer, microBatch));
  return addresses;
}

Status HostEngine::transfer(std::byte *to, const std::byte *from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status HostEngine::play(std::span<const Execution> parts, const Fill &fill) {
  if (workers)
    return StreamsPlayer(tasks, *workers, fill).play(parts);
  return CallerPlayer(program, poison.get(), tasks, fill, {}).play(parts);
}

Status HostEngine::run(uint32_t segment, uint32_t microBatch) {
  const Execution alone = executeAlone(program, segment, microBatch);
  return play({&alone, 1}, {});
}

Status HostEngine::runStep(const Fill &fill, bool late) {
  if (lanes && !late) // no step of several stages is late
    return StreamsPlayer(tasks, *workers, fill).playLanes(*lanes);
  return play(late ? lateStep : step, fill);
}

Status HostEngine::retrace(const Fill &fill, const After &after) {
  return CallerPlayer(program, poison.get(), tasks, fill, after).play(step);
}

int64_t HostEngine::takeExposedNs() {
  return tasks.takeExposedNs() + (workers ? workers->takeWaitedNs() : 0) +
         (lanes ? lanes->takeWaitedNs() : 0);
}

} // namespace ds::rt
