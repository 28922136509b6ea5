//===- Launch.cpp - Generated kernels on a GPU -------------------------------------===//
//
// Arguments and geometry are fixed when the program is loaded: a step passes pointers to them.
//
//===---------------------------------------------------------------------------===//
#include "Commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace ds::rt::cuda {
namespace {

class KernelTask final : public CudaTask {
public:
  KernelTask(const Driver &driver, CUfunction function, unsigned blocks, const Kernel &kernel,
             std::vector<uint64_t> values)
      : driver(driver), function(function), blocks(blocks), threads(kernel.blockThreads),
        sharedBytes(kernel.sharedBytes), values(std::move(values)) {
    for (uint64_t &value : this->values)
      arguments.push_back(&value);
  }
  Status issue(CUstream stream) override {
    const CUresult result = driver.launchKernel(function, blocks, 1, 1, threads, 1, 1, sharedBytes, stream,
                                                arguments.data(), nullptr);
    return result == CUDA_SUCCESS ? Status() : asError(driver, result, "launching the kernel");
  }

private:
  const Driver &driver;
  CUfunction function;
  unsigned blocks, threads, sharedBytes;
  std::vector<uint64_t> values; ///< addresses of the operands, then the params
  std::vector<void *> arguments;
};

/// How many blocks of a persistent kernel run at once.
Result<int64_t> residentBlocks(const Binding &binding, CUfunction function, const Kernel &kernel) {
  int perMultiprocessor = 0;
  const CUresult result = binding.driver.occupancyMaxActiveBlocksPerMultiprocessor(
      &perMultiprocessor, function, static_cast<int>(kernel.blockThreads), kernel.sharedBytes);
  if (result != CUDA_SUCCESS || perMultiprocessor == 0)
    return asError(binding.driver, result == CUDA_SUCCESS ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : result,
                   fmt::format("kernel '{}' with {} threads and {} bytes of shared memory", kernel.name,
                               kernel.blockThreads, kernel.sharedBytes));
  return static_cast<int64_t>(perMultiprocessor) * binding.hardware.multiprocessors;
}

} // namespace

Result<std::unique_ptr<CudaTask>> bindKernel(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  const Kernel &kernel = p.kernels[command.callee];
  CUfunction function = nullptr;
  if (const CUresult result =
          binding.driver.moduleGetFunction(&function, binding.module, kernel.name.c_str());
      result != CUDA_SUCCESS)
    return Error{ExitCode::Corrupt, fmt::format("the kernel image has no entry '{}'", kernel.name),
                 "compile the model again with ds-opt"};
  constexpr uint32_t kSharedWithoutAsking = 48 * 1024;
  if (kernel.sharedBytes > kSharedWithoutAsking)
    binding.driver.funcSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    static_cast<int>(kernel.sharedBytes)); // else the launch says so
  std::vector<uint64_t> values;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    values.push_back(reinterpret_cast<uint64_t>(binding.address(p.operands[command.firstOperand + k])));
  for (uint32_t k = 0; k < command.numParams; ++k)
    values.push_back(static_cast<uint64_t>(p.params[command.firstParam + k]));
  const int64_t extent = kernel.extent != 0 ? kernel.extent : p.params[command.firstParam];
  int64_t blocks = (extent + kernel.unitsPerBlock - 1) / kernel.unitsPerBlock;
  if (blocks == 0)
    return std::unique_ptr<CudaTask>(std::make_unique<NoTask>());
  if (kernel.persistent) {
    Result<int64_t> most = residentBlocks(binding, function, kernel);
    if (!most)
      return most.error();
    blocks = std::min(blocks, *most);
  }
  if (blocks > INT32_MAX)
    return Error{ExitCode::Device,
                 fmt::format("kernel '{}' needs {} blocks, the limit is {}", kernel.name, blocks, INT32_MAX),
                 ""};
  return std::unique_ptr<CudaTask>(std::make_unique<KernelTask>(
      binding.driver, function, static_cast<unsigned>(blocks), kernel, std::move(values)));
}

} // namespace ds::rt::cuda
