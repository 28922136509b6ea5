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

/// What a launch is given.
struct Arguments {
  std::vector<uint64_t> values; ///< parameters of 8 bytes
  std::vector<uint64_t> table;  ///< one more parameter, if not empty
  int64_t blocks = 0;           ///< that the work asks for
};

class KernelTask final : public CudaTask {
public:
  KernelTask(const Driver &driver, CUfunction function, unsigned blocks, const Kernel &kernel,
             Arguments given)
      : driver(driver), function(function), blocks(blocks), threads(kernel.blockThreads),
        sharedBytes(kernel.sharedBytes), given(std::move(given)) {
    for (uint64_t &value : this->given.values)
      arguments.push_back(&value);
    if (!this->given.table.empty())
      arguments.push_back(this->given.table.data());
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
  Arguments given;
  std::vector<void *> arguments;
};

int64_t blocksFor(int64_t extent, const Kernel &kernel) {
  return (extent + kernel.unitsPerBlock - 1) / kernel.unitsPerBlock;
}

/// The addresses of the operands, then the params.
Arguments giveOperands(const Binding &binding, const Command &command, const Kernel &kernel) {
  const Program &p = binding.program;
  Arguments given;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    given.values.push_back(reinterpret_cast<uint64_t>(binding.address(p.operands[command.firstOperand + k])));
  for (uint32_t k = 0; k < command.numParams; ++k)
    given.values.push_back(static_cast<uint64_t>(p.params[command.firstParam + k]));
  given.blocks = blocksFor(kernel.extent != 0 ? kernel.extent : p.params[command.firstParam], kernel);
  return given;
}

/// The addresses of the scalars, the number of blocks, and the table of the items.
Arguments giveItems(const Binding &binding, const Command &command, const Kernel &kernel) {
  const Program &p = binding.program;
  const uint32_t operands = command.numOperands / command.numParams;
  Arguments given;
  for (uint32_t item = 0; item < command.numParams; ++item) {
    const int64_t extent = p.params[command.firstParam + item];
    given.table.push_back(static_cast<uint64_t>(given.blocks));
    given.table.push_back(static_cast<uint64_t>(extent));
    for (uint32_t k = 0; k < operands; ++k) {
      const uint32_t buffer = p.operands[command.firstOperand + item * operands + k];
      const bool isShared = p.buffers[buffer].shape.empty();
      if (!isShared || item == 0)
        (isShared ? given.values : given.table)
            .push_back(reinterpret_cast<uint64_t>(binding.address(buffer)));
    }
    given.blocks += blocksFor(extent, kernel);
  }
  given.values.push_back(static_cast<uint64_t>(given.blocks));
  const size_t rowWords = given.table.size() / command.numParams;
  given.table.resize(kernel.items * rowWords, INT64_MAX);
  return given;
}

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
  Arguments given =
      kernel.items != 0 ? giveItems(binding, command, kernel) : giveOperands(binding, command, kernel);
  int64_t blocks = given.blocks;
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
      binding.driver, function, static_cast<unsigned>(blocks), kernel, std::move(given)));
}

} // namespace ds::rt::cuda
