//===- Kernels.cpp - Where the fake device's kernels come from, and NVML ---------------===//
#include "Fake.h"
#include "State.h"

#include "Cuda/NvmlApi.h"

#include "ds/Runtime/Cpu/KernelImage.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace ds::rt::fake;

namespace ds::rt::fake {
namespace {

/// A kernel of the CPU's form.
struct Twin {
  KernelFunction function;
  std::vector<bool> isScalar; ///< of its operands
  int64_t extent;             ///< 0: the first param
  uint32_t items;             ///< as in rt::Kernel
};

std::map<std::string, Twin> &twins() {
  static std::map<std::string, Twin> instance;
  return instance;
}

/// Of the operands of a launch of kernel `index`, which are scalars.
std::vector<bool> findScalars(const Program &program, uint32_t index) {
  std::vector<bool> isScalar(program.kernels[index].alignments.size());
  for (const Command &command : program.commands)
    if (command.kind == CommandKind::Kernel && command.callee == index)
      for (size_t k = 0; k < isScalar.size(); ++k)
        isScalar[k] = program.buffers[program.operands[command.firstOperand + k]].shape.empty();
  return isScalar;
}

/// Takes the kernels of the programs that the environment names, once.
void readPrograms() {
  static bool done = false;
  const char *cuda = std::getenv("DS_FAKE_PROGRAM"), *cpu = std::getenv("DS_FAKE_TWIN");
  if (std::exchange(done, true) || !cuda || !cpu)
    return;
  Result<Program> program = readProgram(cuda), twin = readProgram(cpu);
  if (!program || !twin)
    return;
  static Result<KernelImage> image = KernelImage::open(*twin);
  for (uint32_t i = 0; image && i < twin->kernels.size(); ++i)
    for (uint32_t k = 0; k < program->kernels.size(); ++k)
      if (const rt::Kernel &kernel = program->kernels[k]; kernel.name == twin->kernels[i].name)
        twins()[kernel.name] = {image->function(i), findScalars(*program, k), kernel.extent, kernel.items};
}

/// The items that stand in the table behind the scalars' addresses and the number of blocks.
void runItems(const Twin &twin, const std::vector<uint64_t> &arguments) {
  const auto scalars = static_cast<size_t>(std::count(twin.isScalar.begin(), twin.isScalar.end(), true));
  const uint64_t rowWords = ItemTable::rowWords(twin.isScalar.size() - scalars);
  for (uint32_t item = 0; item < twin.items; ++item) {
    const uint64_t *scalar = arguments.data(), *row = scalar + scalars + 1 + item * rowWords, *word = row + 2;
    if (row[0] == INT64_MAX)
      return;
    std::vector<void *> buffers;
    for (const bool isScalar : twin.isScalar)
      buffers.push_back(reinterpret_cast<void *>(isScalar ? *scalar++ : *word++));
    const auto extent = static_cast<int64_t>(row[1]);
    twin.function(buffers.data(), &extent, 0, extent);
  }
}

void run(const Twin &twin, const std::vector<uint64_t> &arguments) {
  if (twin.items != 0)
    return runItems(twin, arguments);
  std::vector<void *> buffers;
  for (size_t i = 0; i < twin.isScalar.size(); ++i)
    buffers.push_back(reinterpret_cast<void *>(arguments[i]));
  const int64_t *scalars = reinterpret_cast<const int64_t *>(arguments.data()) + buffers.size();
  twin.function(buffers.data(), scalars, 0, twin.extent != 0 ? twin.extent : scalars[0]);
}

} // namespace

KernelBody findBody(const std::string &name) {
  readPrograms();
  const auto found = twins().find(name);
  if (found == twins().end())
    return {};
  return [twin = found->second](const std::vector<uint64_t> &arguments) { run(twin, arguments); };
}

} // namespace ds::rt::fake

extern "C" const char *dsFakeCalls() {
  static std::string last;
  last = std::exchange(state().calls, "");
  return last.c_str();
}

extern "C" void dsFakeKernel(const char *name, void *function, uint32_t operands, int64_t extent) {
  twins()[name] = {reinterpret_cast<ds::rt::KernelFunction>(function), std::vector<bool>(operands), extent,
                   0};
}

extern "C" void dsFakeReset() {
  state().sticky = CUDA_SUCCESS;
  state().runs.clear();
  state().calls.clear();
}

//===----------------------------------------------------------------------===//
// NVML
//===----------------------------------------------------------------------===//

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned bytes) {
  const char *version = std::getenv("DS_FAKE_DRIVER_BUILD");
  std::snprintf(text, bytes, "%s", version ? version : "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *device) {
  *device = reinterpret_cast<nvmlDevice_t>(&state());
  return 0;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *memory) {
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  *memory = {total, free, total - free};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned *count, nvmlProcessInfo_t *processes) {
  const char *holder = std::getenv("DS_FAKE_HOLDER");
  nvmlProcessInfo_t process{};
  *count = holder && std::sscanf(holder, "%u %llu", &process.pid, &process.usedGpuMemory) == 2 ? 1 : 0;
  if (*count == 1)
    processes[0] = process;
  return 0;
}

} // extern "C"
