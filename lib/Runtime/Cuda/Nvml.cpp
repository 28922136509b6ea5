//===- Nvml.cpp - Who holds a device's memory ---------------------------------------===//
#include "Nvml.h"

#include "Cuda/Binding/Library.h"
#include "NvmlApi.h"

#include <fstream>
#include <unistd.h>
#include <vector>

namespace ds::rt::cuda {
namespace {

#define DS_NVML_FUNCTIONS(X)                                                                                 \
  X(nvmlInit_v2, init)                                                                                       \
  X(nvmlSystemGetDriverVersion, driverVersion)                                                               \
  X(nvmlDeviceGetHandleByPciBusId_v2, handleByBusId)                                                         \
  X(nvmlDeviceGetMemoryInfo, memoryInfo)                                                                     \
  X(nvmlDeviceGetComputeRunningProcesses_v3, processes)

struct Nvml {
#define DS_NVML_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_NVML_FUNCTIONS(DS_NVML_DECLARE)
#undef DS_NVML_DECLARE
};

/// Null where NVML is missing or does not start.
const Nvml *open() {
  static Nvml nvml;
  const Result<void *> library = openLibrary({"DS_NVML", {"libnvidia-ml.so.1"}, "", ""});
  std::string missing;
  if (!library)
    return nullptr;
#define DS_NVML_FIND(FUNCTION, MEMBER) find(*library, #FUNCTION, nvml.MEMBER, missing);
  DS_NVML_FUNCTIONS(DS_NVML_FIND)
#undef DS_NVML_FIND
  return missing.empty() && nvml.init() == 0 ? &nvml : nullptr;
}

const Nvml *nvml() {
  static const Nvml *const opened = open();
  return opened;
}

std::optional<nvmlDevice_t> deviceAt(const std::string &busId) {
  nvmlDevice_t device = nullptr;
  if (!nvml() || nvml()->handleByBusId(busId.c_str(), &device) != 0)
    return std::nullopt;
  return device;
}

std::string describe(const nvmlProcessInfo_t &process) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", process.pid));
  std::getline(file, name);
  const std::string who = static_cast<pid_t>(process.pid) == ::getpid() ? "this process"
                          : name.empty() ? fmt::format("process {}", process.pid)
                                         : fmt::format("process {} ({})", process.pid, name);
  if (process.usedGpuMemory == ~0ull)
    return who + " holds some";
  return fmt::format("{} holds {:.2f} GiB", who, static_cast<double>(process.usedGpuMemory) / (1ull << 30));
}

} // namespace

std::optional<uint64_t> usedMemory(const std::string &busId) {
  const std::optional<nvmlDevice_t> device = deviceAt(busId);
  nvmlMemory_t memory{};
  if (!device || nvml()->memoryInfo(*device, &memory) != 0)
    return std::nullopt;
  return memory.used;
}

std::optional<std::string> driverVersion() {
  char text[96] = "";
  if (!nvml() || nvml()->driverVersion(text, sizeof text) != 0 || !*text)
    return std::nullopt;
  return text;
}

std::string describeHolders(const std::string &busId) {
  const std::optional<nvmlDevice_t> device = deviceAt(busId);
  std::vector<nvmlProcessInfo_t> processes(64);
  auto count = static_cast<unsigned int>(processes.size());
  if (!device || nvml()->processes(*device, &count, processes.data()) != 0)
    return {};
  std::string text;
  for (unsigned int i = 0; i < count && i < processes.size(); ++i)
    text += (text.empty() ? "" : ", ") + describe(processes[i]);
  return text;
}

} // namespace ds::rt::cuda
