//===- Nvml.cpp - Who holds a device's memory ---------------------------------------===//
#include "Nvml.h"

#include "Library.h"

#include <fstream>
#include <unistd.h>
#include <vector>

namespace ds::rt::cuda {
namespace {

using Device = struct nvmlDevice_st *;

struct Memory {
  unsigned long long total, free, used;
};

/// nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v3 fills.
struct Process {
  unsigned int pid;
  unsigned long long usedBytes; ///< all ones: not known
  unsigned int gpuInstance, computeInstance;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*handleByBusId)(const char *, Device *) = nullptr;
  int (*memoryInfo)(Device, Memory *) = nullptr;
  int (*processes)(Device, unsigned int *, Process *) = nullptr;
};

/// Null where NVML is missing or does not start.
const Nvml *open() {
  static Nvml nvml;
  const Result<void *> library = openLibrary({"DS_NVML", {"libnvidia-ml.so.1"}, "", ""});
  std::string missing;
  if (!library)
    return nullptr;
  find(*library, "nvmlInit_v2", nvml.init, missing);
  find(*library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.handleByBusId, missing);
  find(*library, "nvmlDeviceGetMemoryInfo", nvml.memoryInfo, missing);
  find(*library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes, missing);
  return missing.empty() && nvml.init() == 0 ? &nvml : nullptr;
}

const Nvml *nvml() {
  static const Nvml *const opened = open();
  return opened;
}

std::optional<Device> deviceAt(const std::string &busId) {
  Device device = nullptr;
  if (!nvml() || nvml()->handleByBusId(busId.c_str(), &device) != 0)
    return std::nullopt;
  return device;
}

std::string describe(const Process &process) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", process.pid));
  std::getline(file, name);
  const std::string who = static_cast<pid_t>(process.pid) == ::getpid() ? "this process"
                          : name.empty() ? fmt::format("process {}", process.pid)
                                         : fmt::format("process {} ({})", process.pid, name);
  if (process.usedBytes == ~0ull)
    return who + " holds some";
  return fmt::format("{} holds {:.2f} GiB", who, static_cast<double>(process.usedBytes) / (1ull << 30));
}

} // namespace

std::optional<uint64_t> usedMemory(const std::string &busId) {
  const std::optional<Device> device = deviceAt(busId);
  Memory memory{};
  if (!device || nvml()->memoryInfo(*device, &memory) != 0)
    return std::nullopt;
  return memory.used;
}

std::string describeHolders(const std::string &busId) {
  const std::optional<Device> device = deviceAt(busId);
  std::vector<Process> processes(64);
  auto count = static_cast<unsigned int>(processes.size());
  if (!device || nvml()->processes(*device, &count, processes.data()) != 0)
    return {};
  std::string text;
  for (unsigned int i = 0; i < count && i < processes.size(); ++i)
    text += (text.empty() ? "" : ", ") + describe(processes[i]);
  return text;
}

} // namespace ds::rt::cuda
