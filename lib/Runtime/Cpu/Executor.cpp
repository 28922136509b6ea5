//===- Executor.cpp - Loads a program and runs its segments --------------------===//
//
// The order of loading is the order of what a user can do about a failure: the processor (another program),
// the memory (another plan), the libraries (another machine).
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Executor.h"

#include "Clock.h"
#include "Convert.h"
#include "Training/DeviceRunner.h"
#include "Poison.h"
#include "StartTeam.h"
#include "StreamWorkers.h"
#include "Task.h"

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
  if (program.arenas.nvme != 0)
    return Error{
        ExitCode::Device,
        fmt::format("the program keeps {} bytes on NVMe, which this ds-run cannot do", program.arenas.nvme),
        "compile without offload to nvme"};
  if (options.rank >= program.world)
    return Error{ExitCode::Internal, fmt::format("rank {} of a program for {}", options.rank, program.world),
                 ""};
  std::unique_ptr<Executor> executor(new Executor);
  executor->prog = std::move(program);
  executor->thisRank = options.rank;
  executor->failed = options.failed;
  if (!options.device) {
    Status status = executor->loadHere(options);
    return status ? Result(std::move(executor)) : status.error();
  }
  Result<std::unique_ptr<DeviceRunner>> runner = DeviceRunner::load(
      *options.device, executor->prog, options.rank, options.poison.value_or(poisoningRequested()));
  if (!runner)
    return runner.error();
  executor->runner = std::move(*runner);
  return executor;
}

Status Executor::loadHere(const ExecutorOptions &options) {
  Result<KernelImage> opened = KernelImage::open(prog);
  if (!opened)
    return opened.error();
  image = std::move(*opened);
  for (auto [arena, bytes, what] :
       {std::tuple(&device, prog.arenas.device, "device"), {&host, prog.arenas.host, "host"}}) {
    Result<Arena> created = Arena::create(bytes, what);
    if (!created)
      return created.error();
    *arena = std::move(*created);
  }
  if (Status status = startTeam(prog.threads); !status)
    return status;
  return bindAll(options);
}

Status Executor::bindAll(const ExecutorOptions &options) {
  const Binding binding{prog, image, [this](uint32_t buffer) { return data(buffer); },
                        options.isa.value_or(bestIsa()), options.communicators};
  for (uint32_t i = 0; i < prog.commands.size(); ++i) {
    Result<std::unique_ptr<Task>> task = bindCommand(binding, i);
    if (!task)
      return task.error();
    tasks.push_back(std::move(*task));
  }
  if (options.poison.value_or(poisoningRequested()))
    return startPoison();
  if (prog.streams.size() <= 1)
    return {};
  workers = std::make_unique<StreamWorkers>(
      prog, [this](uint32_t command) { return runTask(command); }, failed);
  return workers->start();
}

void *Executor::data(uint32_t buffer) const {
  const Buffer &b = prog.buffers[buffer];
  std::byte *base = runner ? runner->base(b.space) : (b.space == Space::Device ? device : host).data();
  return base + b.offset + thisRank * b.rankStride;
}

std::vector<void *> Executor::inputs(uint32_t microStep) const {
  if (runner)
    return runner->inputs(microStep);
  std::vector<void *> addresses;
  for (const Input &input : prog.inputs)
    addresses.push_back(data(input.buffer));
  return addresses;
}

Status Executor::change(std::byte *address, uint64_t bytes, const std::function<Status(std::byte *)> &body) {
  if (!runner || !runner->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = body(copy.data()); !status)
    return status;
  return runner->transfer(address, copy.data(), bytes);
}

Status Executor::inspect(const std::byte *address, uint64_t bytes,
                         const std::function<Status(const std::byte *)> &body) const {
  if (!runner || !runner->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = runner->transfer(copy.data(), address, bytes); !status)
    return status;
  return body(copy.data());
}

Status Executor::runTask(uint32_t command) {
  if (!tasks[command])
    return {};
  if (!measuring)
    return tasks[command]->run();
  const int64_t begin = nowNs();
  Status status = tasks[command]->run();
  static std::mutex mutex; // streams finish their commands at the same time
  const std::lock_guard lock(mutex);
  timings.push_back({command, prog.commands[command].stream, begin, nowNs()});
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

Status Executor::runInOrder(const Segment &segment) {
  for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i)
    if (Status status = runHere(i); !status)
      return status;
  return {};
}

Status Executor::run(uint32_t segment) {
  if (runner)
    return runner->run(segment);
  if (poison)
    return runPoisoned(segment);
  if (workers)
    return workers->run(segment);
  return runInOrder(prog.segments[segment]);
}

Status Executor::runStep(const std::function<Status(uint32_t)> &fill) {
  if (runner)
    return runner->runStep(fill);
  uint32_t microStep = 0;
  for (const Slot &slot : prog.schedule)
    for (uint32_t i = 0; i < slot.count; ++i) {
      if (prog.segments[slot.segment].kind != SegmentKind::Update)
        if (Status status = fill(microStep++); !status)
          return status;
      if (Status status = run(slot.segment); !status)
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
    Arena &arena = lifetime.space == Space::Device ? device : host;
    std::memset(arena.data() + lifetime.offset, byte, lifetime.bytes);
    return {};
  });
  return poison->start();
}

/// Runs a segment in issue order.
Status Executor::runPoisoned(uint32_t index) {
  const Segment &segment = prog.segments[index];
  for (uint32_t t = 0; t < segment.numCommands; ++t) {
    if (Status status = poison->before(index, t); !status)
      return status;
    if (Status status = runHere(segment.firstCommand + t); !status)
      return status;
    if (Status status = poison->after(index, t); !status)
      return status;
  }
  return {};
}

} // namespace ds::rt
