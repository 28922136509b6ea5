//===- Executor.cpp - The door to a program that runs -------------------------------===//
#include "ds/Runtime/Engine/Executor.h"

#include "Cpu/HostEngine.h"
#include "DeviceEngine.h"
#include "OpenStorage.h"
#include "Player/Poison.h"
#include "Program/Elements.h"
#include "Program/Stages.h"

#include <fmt/format.h>

#include <cmath>

namespace ds::rt {

Executor::Executor(Program program, uint32_t rank, uint32_t stage)
    : all(program.stages.size() > 1 ? std::make_unique<const Program>(program) : nullptr),
      prog(takeStage(std::move(program), stage)), thisRank(rank), number(stage) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::load(Program program, const ExecutorOptions &options) {
  if (options.rank >= program.world)
    return Error{ExitCode::Internal, fmt::format("rank {} of a program for {}", options.rank, program.world),
                 ""};
  const uint32_t stage = options.stage.value_or(stageOf(program, options.rank));
  if (stage >= program.stages.size())
    return Error{ExitCode::Internal, fmt::format("stage {} of a program of {}", stage, program.stages.size()),
                 ""};
  std::vector<GroupUse> groups = groupsOf(program);
  std::unique_ptr<Executor> executor(new Executor(std::move(program), options.rank, stage));
  executor->device = options.device;
  Result<std::unique_ptr<Storage>> storage = openStorage(executor->prog, options.rank, options.storage);
  if (!storage)
    return storage.error();
  executor->storage = std::move(*storage);
  const bool poison = options.poison.value_or(poisoningRequested());
  Result<std::unique_ptr<Engine>> engine =
      options.device
          ? DeviceEngine::load(
                *options.device, executor->prog,
                {options.rank, std::move(groups), poison, executor->storage.get(), options.clock})
          : HostEngine::load(executor->prog, {options.rank, options.isa.value_or(bestIsa()), poison,
                                              options.communicator, options.failed, executor->storage.get()});
  if (!engine)
    return engine.error();
  executor->engine = std::move(*engine);
  return executor;
}

void *Executor::data(uint32_t buffer, uint32_t microBatch) const {
  const Buffer &b = prog.buffers[buffer];
  return engine->base(b.space) + windowOffset(b, prog.mesh, thisRank, microBatch);
}

std::vector<void *> Executor::inputs(uint32_t microBatch) const { return engine->inputs(microBatch); }

Status Executor::change(std::byte *address, uint64_t bytes, const std::function<Status(std::byte *)> &body) {
  if (storage && storage->addresses().holds(address))
    return storage->change(storage->addresses().offsetOf(address), bytes, body);
  if (!engine->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = body(copy.data()); !status)
    return status;
  return engine->transfer(address, copy.data(), bytes);
}

Status Executor::inspect(const std::byte *address, uint64_t bytes,
                         const std::function<Status(const std::byte *)> &body) const {
  if (storage && storage->addresses().holds(address))
    return storage->inspect(storage->addresses().offsetOf(address), bytes, body);
  if (!engine->isRemote(address))
    return body(address);
  std::vector<std::byte> copy(bytes);
  if (Status status = engine->transfer(copy.data(), address, bytes); !status)
    return status;
  return body(copy.data());
}

Status Executor::run(uint32_t segment, uint32_t microBatch) { return engine->run(segment, microBatch); }
Status Executor::runStep(const Engine::Fill &fill, bool late) { return engine->runStep(fill, late); }
Status Executor::retrace(const Engine::Fill &fill, const Engine::After &after) {
  return engine->retrace(fill, after);
}

void Executor::measure(bool on) { engine->measure(on); }
std::vector<Timing> Executor::takeTimings() { return engine->takeTimings(); }
int64_t Executor::takeExposedNs() { return engine->takeExposedNs(); }
GraphRun Executor::graph() const { return engine->graph(); }

double readOutput(const Executor &executor, const Output &output) {
  const DType dtype = executor.program().buffers[output.buffer].dtype;
  double value = NAN;
  (void)executor.inspect(static_cast<const std::byte *>(executor.data(output.buffer)), byteSize(dtype),
                         [&](const std::byte *host) -> Status {
                           value = loadElement(host, dtype);
                           return {};
                         }); // a device that has failed says so in the next run
  return value;
}

} // namespace ds::rt
