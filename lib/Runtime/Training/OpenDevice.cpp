//===- OpenDevice.cpp - The device that a run asks for ----------------------------===//
#include "OpenDevice.h"

#include "Cuda/CudaPlugin.h"
#include "Process/Messages.h"
#include "Process/PluginFile.h"

#include <fmt/format.h>

#include <cmath>

namespace ds::rt {

Status checkDeviceName(const std::string &device) {
  if (device == "cpu" || device == "cuda")
    return {};
  return Error{ExitCode::Usage, fmt::format("--device {}: known devices are cpu and cuda", device), ""};
}

Status checkTarget(const Program &program, const TrainOptions &options) {
  const std::string family = program.target.substr(0, program.target.find(':'));
  if (family == options.device)
    return {};
  return Error{
      ExitCode::Device,
      fmt::format("--device {}: {} was compiled for {}", options.device, options.program, program.target),
      fmt::format("run it with --device {}, or compile with --target {}", family,
                  options.device == "cpu" ? "cpu" : "cuda:sm_90")};
}

Result<std::unique_ptr<Device>> openDevice(const TrainOptions &options, RankGroup &ranks) {
  if (options.device == "cpu")
    return std::unique_ptr<Device>();
  return openCudaDevice({&ranks, std::chrono::milliseconds(std::llround(options.timeoutSeconds * 1000))});
}

/// Which of its host's devices a rank uses: the ranks of a host take them in order.
static uint32_t ordinalOf(RankGroup &ranks) {
  uint32_t before = 0;
  for (uint32_t rank = 0; rank < ranks.rank(); ++rank)
    before += ranks.host(rank) == ranks.host(ranks.rank());
  return before;
}

Result<std::unique_ptr<Device>> openCudaDevice(const DeviceOptions &options) {
  static const Result<const CudaApi *> api = openApi<CudaApi>(
      {"libds-cuda.so", "dsCuda", "--device cuda: a GPU needs",
       "build with CUDA 13's headers, keep the plugin in ../lib of the tool, or run with --device cpu"},
      kCudaAbi);
  if (!api)
    return api.error();
  Error error;
  CudaOptions settings{options.ranks ? ordinalOf(*options.ranks) : 0, options.ranks, options.timeout};
  std::unique_ptr<Device> device((*api)->open(settings, error));
  if (!device)
    return error;
  return device;
}

std::string describeMemory(const DeviceMemory &memory, const Program &program) {
  const auto text = [](uint64_t bytes) { return bytesText(static_cast<double>(bytes)); };
  return fmt::format("device memory {} in arenas of {} planned, {} beyond them for context and libraries, "
                     "{} of {} free",
                     text(memory.arenas), text(program.stages.front().arenas.device), text(memory.overhead),
                     text(memory.free), text(memory.total));
}

} // namespace ds::rt
