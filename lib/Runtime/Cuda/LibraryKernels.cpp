//===- LibraryKernels.cpp - The kernels that come with the runtime --------------------------------===//
//
// They are machine code for every architecture that programs are compiled for (kernels/*.cu), part of the
// plugin. What a command launches is said by kernels/CudaLaunches.cpp, which the tests of the kernels share.
//
//===---------------------------------------------------------------------------===//
#include "Commands.h"

#include "ds/Kernels/Kernels.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

// The image is put here by the assembler; it is aligned as the driver wants it.
asm(".section .rodata\n"
    ".balign 64\n"
    "ds_kernels_image:\n"
    ".incbin \"" DS_KERNELS_FATBIN "\"\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char ds_kernels_image[];

namespace ds::rt::cuda {
namespace {

/// The launches of one command, each with its argument.
class LaunchesTask final : public CudaTask {
public:
  struct Launch {
    CUfunction function;
    CudaLaunch what;
  };
  LaunchesTask(const Driver &driver, std::vector<Launch> launches)
      : driver(driver), launches(std::move(launches)) {}
  Status issue(CUstream stream) override {
    for (Launch &launch : launches) {
      void *arguments[] = {launch.what.argument.data()};
      const CUresult result =
          driver.launchKernel(launch.function, launch.what.blocks, 1, 1, launch.what.threads, 1, 1,
                              launch.what.sharedBytes, stream, arguments, nullptr);
      if (result != CUDA_SUCCESS)
        return asError(driver, result, fmt::format("launching {}", launch.what.entry));
    }
    return {};
  }

private:
  const Driver &driver;
  std::vector<Launch> launches;
};

/// The library's code, loaded when the first command asks.
Result<CUmodule> loadKernels(const Binding &binding) {
  CUmodule &kernels = binding.libraries.kernels;
  if (kernels)
    return kernels;
  const CUresult result = binding.driver.moduleLoadDataEx(&kernels, ds_kernels_image, 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS)
    return kernels;
  kernels = nullptr;
  return asError(binding.driver, result, "the driver refuses the runtime's kernels");
}

Result<LaunchesTask::Launch> findEntry(const Binding &binding, CUmodule kernels, CudaLaunch what) {
  constexpr uint32_t kSharedWithoutAsking = 48 * 1024;
  LaunchesTask::Launch launch{nullptr, std::move(what)};
  CUresult result = binding.driver.moduleGetFunction(&launch.function, kernels, launch.what.entry);
  if (result == CUDA_SUCCESS && launch.what.sharedBytes > kSharedWithoutAsking)
    result = binding.driver.funcSetAttribute(launch.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                             static_cast<int>(launch.what.sharedBytes));
  if (result == CUDA_SUCCESS)
    return launch;
  return asError(
      binding.driver, result,
      fmt::format("kernel {} with {} bytes of shared memory", launch.what.entry, launch.what.sharedBytes));
}

/// One task of all launches.
Result<std::unique_ptr<CudaTask>> bindLaunches(const Binding &binding, std::vector<CudaLaunch> list) {
  Result<CUmodule> kernels = loadKernels(binding);
  if (!kernels)
    return kernels.error();
  std::vector<LaunchesTask::Launch> launches;
  for (CudaLaunch &what : list) {
    Result<LaunchesTask::Launch> launch = findEntry(binding, *kernels, std::move(what));
    if (!launch)
      return launch.error();
    launches.push_back(std::move(*launch));
  }
  return std::unique_ptr<CudaTask>(std::make_unique<LaunchesTask>(binding.driver, std::move(launches)));
}

} // namespace

Result<std::unique_ptr<CudaTask>> bindLaunch(const Binding &binding, CudaLaunch what) {
  return bindLaunches(binding, {std::move(what)});
}

Result<std::unique_ptr<CudaTask>> bindLibraryKernel(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  std::vector<View> views;
  for (uint32_t k = 0; k < command.numOperands; ++k) {
    const uint32_t id = p.operands[command.firstOperand + k];
    const Buffer &buffer = p.buffers[id];
    views.push_back({binding.address(id), buffer.shape.data(), buffer.strides.data(),
                     static_cast<uint32_t>(buffer.shape.size()), buffer.dtype});
  }
  const LibraryFn function =
      command.kind == CommandKind::Copy ? LibraryFn::Copy : static_cast<LibraryFn>(command.callee);
  void *workspace = command.workspace == UINT32_MAX ? nullptr : binding.address(command.workspace);
  const LibraryCall call{
      views.data(), p.params.data() + command.firstParam, command.numOperands, command.numParams, 1,
      workspace};
  return bindLaunches(binding, cudaLaunches(function, call));
}

} // namespace ds::rt::cuda
