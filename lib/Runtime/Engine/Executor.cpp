//===- Executor.cpp - Loads a program and runs its segments --------------------===//
//
// The order of loading is the order of what a user can do about a failure: the processor (another program),
// the memory (another plan), the libraries (another machine).
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Engine/Executor.h"

#include "Cpu/Poison.h"
#include "Cpu/StartTeam.h"
#include "Cpu/StreamWorkers.h"
#include "Cpu/Task.h"
#include "DeviceRunner.h"
#include "OpenStorage.h"
#include "Process/Clock.h"
#include "Program/Elements.h"
#include "Program/Execution.h"
#include "Program/Stages.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace ds::rt {
bool poisoningRequested() {
  const char *environment = std::getenv("DS_POISON");
#ifdef DS_POISON_BY_DEFAULT
  return !environment || std::strcmp(environment, "0") != 0;
#else
  return environment && std::strcmp(environment, "0") != 0;
#endif
}

Executor::Executor() = default;
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::load(Program program, const ExecutorOptions &options) {
  if (options.rank >= program.world)
    return Error{ExitCode::Internal, fmt::format("rank {} of a program for {}", options.rank, program.world),
                 ""};
  const uint32_t stage = options.stage.value_or(stageOf(program, options.rank));
  if (stage >= program.stages.size())
    return Error{ExitCode::Internal, fmt::format("stage {} of a program of {}", stage, program.stages.size()),
                 ""};
  std::unique_ptr<Executor> executor(new Executor);
  std::vector<GroupUse> groups = groupsOf(program);
  executor->prog = takeStage(std::move(program), stage);
  executor->thisRank = options.rank;
  executor->failed = options.failed;
  Result<std::unique_ptr<Storage>> storage = openStorage(executor->prog, options.rank, options.storage);
  if (!storage)
    return storage.error();
  executor->storage = std::move(*storage);
  if (!options.device) {
    Status status = executor->loadHere(options);
    return status ? Result(std::move(executor)) : status.error();
  }
  Result<std::unique_ptr<DeviceRunner>> runner =
      DeviceRunner::load(*options.device, executor->prog, options.rank, std::move(groups),
                         options.poison.value_or(poisoningRequested()), executor->storage.get());
  if (!runner)
    return runner.error();
  executor->runner = std::move(*runner);
  return executor;
}

Status Executor::loadHere(const ExecutorOptions &options) {
  if (prog.target != "cpu")
    return Error{ExitCode::Device, fmt::format("the program is made for {}, not for the CPU", prog.target),
                 "run it with --device cuda, or compile with --target cpu"};
  Result<KernelImage> opened = KernelImage::open(prog);
  if (!opened)
    return opened.error();
  image = std::move(*opened);
  for (auto [arena, bytes, what] :
       {std::tuple(&device, stage().arenas.device, "device"), {&host, stage().arenas.host, "host"}}) {
    Result<Arena> created = Arena::create(bytes, what);
    if (!created)
      return created.error();
    *arena = std::move(*created);
  }
  if (Status status = startTeam(prog.threads); !status)
    return status;
  if (storage)
    useStaging(prog, rank(), host.data(), *storage);
  step = executionsOf(prog);
  return bindAll(options);
}

/// Binds a command for every place that its operands have over micro-batches.
Status Executor::bind(const ExecutorOptions &options, uint32_t command) {
  for (uint32_t m = 0; m < numBindings(prog, command); ++m) {
    const Binding binding{prog,
                          image,
                          [this, m](uint32_t buffer) { return data(buffer, m); },
                          options.isa.value_or(bestIsa()),
                          options.communicator,
                          storage.get()};
    Result<std::unique_ptr<Task>> task = bindCommand(binding, command);
    if (!task)
      return task.error();
    tasks[command].push_back(std::move(*task));
  }
  return {};
}

Status Executor::bindAll(const ExecutorOptions &options) {
  tasks.resize(prog.commands.size());
  for (uint32_t i = 0; i < prog.commands.size(); ++i)
    if (Status status = bind(options, i); !status)
      return status;
  if (options.poison.value_or(poisoningRequested()))
    return startPoison();
  if (prog.streams.size() <= 1)
    return {};
  workers = std::make_unique<StreamWorkers>(
      prog, [this](uint32_t command) { return runTask(command); },
      StreamWorkers::Overlapped{[this](uint32_t command) { return beginTask(command); },
                                [this](uint32_t command) { return taskOf(command)->advance(); },
                                [this](uint32_t command) { return finishTask(command); }},
      failed);
  began.resize(prog.commands.size());
  return workers->start();
}

void *Executor::data(uint32_t buffer, uint32_t forMicroBatch) const {
  const Buffer &b = prog.buffers[buffer];
  std::byte *base = b.space == Space::Nvme ? storage->base()
                    : runner               ? runner->base(b.space)
                                           : (b.space == Space::Device ? device : host).data();
  return base + windowOffset(b, prog.mesh, thisRank, forMicroBatch);
}

std::vector<void *> Executor::inputs(uint32_t forMicroBatch) const {
  if (runner)
    return runner->inputs(forMicroBatch);
  std::vector<void *> addresses;
  for (const Input &input : prog.inputs)
    addresses.push_back(data(input.buffer, forMicroBatch));
  return addresses;
}

Status Executor::change(std::byte *address, uint64_t bytes, const std::function<Status(std::byte *)> &body) {
  if (storage && storage->holds(address))
    return storage->change(storage->offsetOf(address), bytes, body);
  if (!runner || !runner->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = body(copy.data()); !status)
    return status;
  return runner->transfer(address, copy.data(), bytes);
}

Status Executor::inspect(const std::byte *address, uint64_t bytes,
                         const std::function<Status(const std::byte *)> &body) const {
  if (storage && storage->holds(address))
    return storage->inspect(storage->offsetOf(address), bytes, body);
  if (!runner || !runner->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = runner->transfer(copy.data(), address, bytes); !status)
    return status;
  return body(copy.data());
}

Task *Executor::taskOf(uint32_t command) const {
  return tasks[command][microBatch % tasks[command].size()].get();
}

void Executor::noteTiming(uint32_t command, int64_t begin) {
  static std::mutex mutex; // streams finish their commands at the same time
  const std::lock_guard lock(mutex);
  timings.push_back({command, prog.commands[command].stream, begin, nowNs()});
}

Status Executor::runTask(uint32_t command) {
  Task *task = taskOf(command);
  if (!task)
    return {};
  if (!measuring)
    return task->run();
  const int64_t begin = nowNs();
  Status status = task->run();
  noteTiming(command, begin);
  return status;
}

Status Executor::beginTask(uint32_t command) {
  began[command] = nowNs();
  return taskOf(command)->begin();
}

Status Executor::finishTask(uint32_t command) {
  Status status = taskOf(command)->complete();
  if (measuring)
    noteTiming(command, began[command]);
  return status;
}

/// Runs a command on the calling thread, where nothing hides the time of a collective.
Status Executor::runHere(uint32_t command) {
  if (prog.commands[command].kind != CommandKind::Collective)
    return runTask(command);
  const int64_t begin = nowNs();
  Status status = runTask(command);
  exposedNs += nowNs() - begin;
  return status;
}

int64_t Executor::takeExposedNs() {
  return std::exchange(exposedNs, 0) + (workers ? workers->takeWaitedNs() : 0);
}

Status Executor::runInOrder(const Segment &segment, const After &after) {
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
    if (Status status = runHere(i); !status)
      return status;
    if (after)
      if (Status status = after(i); !status)
        return status;
  }
  return {};
}

Status Executor::run(uint32_t segment, uint32_t forMicroBatch) {
  if (runner)
    return runner->run(segment, forMicroBatch);
  microBatch = forMicroBatch;
  if (poison)
    return runPoisoned(segment);
  if (workers)
    return workers->run(segment);
  return runInOrder(prog.segments[segment]);
}

Status Executor::runStep(const std::function<Status(uint32_t)> &fill) {
  if (runner)
    return runner->runStep(fill);
  for (const Execution &execution : step) {
    if (execution.fills)
      if (Status status = fill(execution.microBatch); !status)
        return status;
    if (Status status = run(execution.segment, execution.microBatch); !status)
      return status;
  }
  return {};
}

Status Executor::retrace(const std::function<Status(uint32_t)> &fill,
                         const std::function<Status(uint32_t, uint32_t)> &after) {
  if (runner)
    return runner->retrace(fill, after);
  for (const Execution &execution : step) {
    if (execution.fills)
      if (Status status = fill(execution.microBatch); !status)
        return status;
    microBatch = execution.microBatch;
    const auto watch = [&](uint32_t command) { return after(command, execution.microBatch); };
    if (Status status = poison ? runPoisoned(execution.segment, watch)
                               : runInOrder(prog.segments[execution.segment], watch);
        !status)
      return status;
  }
  return {};
}

bool Executor::ranAsGraph() const { return runner && runner->ranAsGraph(); }

const std::string &Executor::graphRefusal() const {
  static const std::string kNone;
  return runner ? runner->graphRefusal() : kNone;
}

double Executor::read(const Output &output) const {
  const DType dtype = prog.buffers[output.buffer].dtype;
  double value = NAN;
  (void)inspect(static_cast<const std::byte *>(data(output.buffer)), byteSize(dtype),
                [&](const std::byte *host) -> Status {
                  value = loadElement(host, dtype);
                  return {};
                }); // a device that has failed says so in the next run
  return value;
}

void Executor::measure(bool on) {
  measuring = on;
  if (runner)
    runner->measure(on);
}

std::vector<Timing> Executor::takeTimings() { return std::exchange(runner ? runner->timings : timings, {}); }

//===----------------------------------------------------------------------===//
// Poisoning
//===----------------------------------------------------------------------===//

Status Executor::startPoison() {
  poison = std::make_unique<Poison>(prog, [this](const Lifetime &lifetime, uint8_t byte) -> Status {
    if (lifetime.space == Space::Nvme)
      return {}; // what a step reads there it has written, or it is a state, which gets a value
    Arena &arena = lifetime.space == Space::Device ? device : host;
    std::memset(arena.data() + lifetime.offset, byte, lifetime.bytes);
    return {};
  });
  return poison->start();
}

/// Runs a segment in issue order.
Status Executor::runPoisoned(uint32_t index, const After &after) {
  const Segment &segment = prog.segments[index];
  for (uint32_t t = 0; t < segment.numCommands; ++t) {
    if (Status status = poison->before(index, t); !status)
      return status;
    if (Status status = runHere(segment.firstCommand + t); !status)
      return status;
    if (after)
      if (Status status = after(segment.firstCommand + t); !status)
        return status;
    if (Status status = poison->after(index, t); !status)
      return status;
  }
  return {};
}

} // namespace ds::rt
