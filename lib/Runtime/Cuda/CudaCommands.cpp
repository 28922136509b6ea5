//===- CudaCommands.cpp - The commands of a program, bound to a GPU --------------------===//
#include "CudaCommands.h"

#include "Commands.h"
#include "Cuda/Binding/Choices.h"
#include "Program/ElfImage.h"
#include "Program/Execution.h"

#include <fmt/format.h>

#include <cstdio>

namespace ds::rt::cuda {

/// PTX for one architecture runs on it and on later ones.
Status CudaCommands::checkTarget() const {
  const Hardware &hardware = context.hardware();
  int target = 0;
  const bool known = std::sscanf(program->target.c_str(), "cuda:sm_%d", &target) == 1;
  const int here = hardware.major * 10 + hardware.minor;
  if (known && target <= here)
    return {};
  return Error{
      ExitCode::Device,
      fmt::format("the program was compiled for {}, but {} is sm_{}", program->target, hardware.name, here),
      fmt::format("compile the model with --target cuda:sm_{}", here)};
}

Status CudaCommands::load(const Program &loaded) {
  program = &loaded;
  libraries = std::make_unique<Libraries>();
  tasks.resize(loaded.commands.size());
  Status status = checkTarget();
  return status ? loadModule() : status;
}

/// The assembled kernels where they are for exactly this device, else the PTX, which the driver assembles.
Status CudaCommands::loadModule() {
  const Driver &driver = context.driver;
  const Hardware &hardware = context.hardware();
  if (program->image.empty())
    return {};
  if (!program->cubin.empty())
    if (Status status = checkElf(program->cubin, "assembled kernel image"); !status)
      return status;
  const std::string exact = fmt::format("cuda:sm_{}{}", hardware.major, hardware.minor);
  if (!program->cubin.empty() && program->target == exact &&
      driver.moduleLoadDataEx(&module, program->cubin.data(), 0, nullptr, nullptr) == CUDA_SUCCESS)
    return {};
  char log[4096] = "";
  CUjit_option keys[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const CUresult result = driver.moduleLoadDataEx(&module, program->image.data(), 2, keys, values);
  if (result == CUDA_SUCCESS && program->target != exact)
    assembled = fmt::format("; kernels of {}, assembled by the driver", program->target);
  if (result == CUDA_SUCCESS)
    return {};
  module = nullptr;
  return asError(driver, result,
                 fmt::format("the driver refuses the program's kernels{}{}", *log ? ": " : "", log));
}

Binding CudaCommands::bindingFor(CUstream stream,
                                 const std::function<std::byte *(uint32_t buffer)> &place) const {
  return {context.driver, context.hardware(), *program, module, stream, *libraries, place, others};
}

Status CudaCommands::bind(uint32_t command, const Device::Address &address) {
  const Command &bound = program->commands[command];
  for (uint32_t m = 0; m < numBindings(*program, command); ++m) {
    if (places.size() == m)
      places.emplace_back([address, m](uint32_t buffer) { return address(buffer, m); });
    Result<std::unique_ptr<CudaTask>> task =
        bindCommand(bindingFor(streams[bound.stream], places[m]), command);
    if (!task)
      return task.error();
    tasks[command].push_back(std::move(*task));
  }
  return {};
}

Status CudaCommands::choose() {
  AlgorithmCache cache = AlgorithmCache::open();
  Status status = libraries->choices->settle(ranks.group(), cache, [this] { context.enter(); });
  libraries->notice = cache.notice();
  if (status)
    leaveOut();
  return status;
}

/// Lets commands do nothing that others do now.
void CudaCommands::leaveOut() {
  std::vector<uint32_t> replaced;
  for (const auto &bound : tasks)
    for (const auto &task : bound)
      for (uint32_t command : task->replaced())
        replaced.push_back(command);
  for (uint32_t command : replaced) {
    tasks[command].clear();
    tasks[command].push_back(std::make_unique<NoTask>());
  }
}

Status CudaCommands::issue(uint32_t command, uint32_t microBatch) {
  const auto &bound = tasks[command];
  return bound[microBatch % bound.size()]->issue(streams[program->commands[command].stream]);
}

Status CudaCommands::draw(std::byte *at, DType dtype, const RandomCall &call) {
  const std::function<std::byte *(uint32_t buffer)> nowhere;
  const Binding binding = bindingFor(streams.compute(), nowhere);
  for (CudaLaunch &launch : cudaLaunches(call, at, dtype)) {
    Result<std::unique_ptr<CudaTask>> task = bindLaunch(binding, std::move(launch));
    if (!task)
      return task.error();
    if (Status status = (*task)->issue(streams.compute()); !status)
      return status;
  }
  return {};
}

void CudaCommands::unload() {
  if (libraries && libraries->kernels)
    context.driver.moduleUnload(libraries->kernels);
  libraries.reset();
  if (module)
    context.driver.moduleUnload(module);
}

} // namespace ds::rt::cuda
