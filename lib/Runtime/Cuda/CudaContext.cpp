//===- CudaContext.cpp - One GPU and its context ------------------------------------===//
#include "CudaContext.h"

#include "Nvml.h"

#include <fmt/format.h>

namespace ds::rt::cuda {

Result<std::unique_ptr<CudaContext>> CudaContext::open(const CudaOptions &options) {
  Result<const Driver *> driver = openDriver();
  if (!driver)
    return driver.error();
  std::unique_ptr<CudaContext> opened(new CudaContext(**driver));
  if (Status status = opened->find(options); !status)
    return status.error();
  opened->describeHardware();
  Status status = opened->start();
  if (status)
    return opened;
  if (opened->context)
    opened->release();
  return status.error();
}

Status CudaContext::check(CUresult result, const char *what) const {
  return result == CUDA_SUCCESS ? Status() : asError(driver, result, what);
}

int CudaContext::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver.deviceGetAttribute(&value, which, handle);
  return value;
}

Status CudaContext::find(const CudaOptions &options) {
  int count = 0;
  if (Status status = check(driver.deviceGetCount(&count), "counting CUDA devices"); !status)
    return status;
  if (count == 0)
    return Error{ExitCode::Device, "--device cuda: no CUDA device",
                 "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or run with --device cpu"};
  if (options.ordinal >= static_cast<uint32_t>(count))
    return Error{ExitCode::Device,
                 fmt::format("--device cuda: rank {} on host {} needs CUDA device {}, but there {} {}",
                             options.ranks->rank(), options.ranks->host(options.ranks->rank()),
                             options.ordinal, count == 1 ? "is" : "are", count),
                 "start one rank for each device"};
  return check(driver.deviceGet(&handle, static_cast<int>(options.ordinal)), "opening the device");
}

void CudaContext::describeHardware() {
  char text[256] = "";
  driver.deviceGetName(text, sizeof text, handle);
  found = {attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
           attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
           attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
           text,
           {}};
  if (driver.deviceGetPCIBusId(text, sizeof text, handle) == CUDA_SUCCESS)
    bus = text;
  int version = 0;
  driver.driverGetVersion(&version);
  found.driver = driverVersion().value_or("CUDA " + spellVersion(version));
}

Status CudaContext::start() {
  usedAtStart = usedMemory(bus);
  if (Status status = check(driver.devicePrimaryCtxRetain(&context, handle), "making a context"); !status)
    return status;
  if (Status status = check(driver.ctxSetCurrent(context), "using the context"); !status)
    return status;
  size_t free = 0, total = 0;
  Status status = check(driver.memGetInfo(&free, &total), "asking for free memory");
  freeAtStart = free;
  return status;
}

std::string CudaContext::describe() const {
  int version = 0;
  driver.driverGetVersion(&version);
  return fmt::format("{} (sm_{}{}, {} multiprocessors), driver for CUDA {}", found.name, found.major,
                     found.minor, found.multiprocessors, spellVersion(version));
}

Result<CUevent> CudaContext::makeEvent(unsigned flags) const {
  CUevent event = nullptr;
  if (Status status = check(driver.eventCreate(&event, flags), "making an event"); !status)
    return status.error();
  return event;
}

Error CudaContext::outOfMemory(uint64_t bytes, const char *what, uint64_t free, uint64_t total) const {
  const std::string holders = describeHolders(bus);
  const std::string wish = bytes == 0 ? "more memory" : fmt::format("{} bytes", bytes);
  return Error{ExitCode::DoesNotFit,
               fmt::format("the {} takes {}, but {} of {} bytes are free on {} ({}){}{}", what, wish, free,
                           total, found.name, bus, holders.empty() ? "" : ": ", holders),
               "end what else runs on the device, or compile with --memory set to what is free"};
}

/// What was in use before there was a context is not this process's. Without NVML the context itself is not
/// counted: it cannot be measured from inside.
DeviceMemory CudaContext::memory(uint64_t arenas) const {
  DeviceMemory memory{arenas, 0, 0, 0};
  size_t free = 0, total = 0;
  if (driver.memGetInfo(&free, &total) != CUDA_SUCCESS)
    return memory;
  memory.free = free;
  memory.total = total;
  const uint64_t before = usedAtStart.value_or(total - freeAtStart);
  const uint64_t now = usedAtStart ? usedMemory(bus).value_or(total - free) : total - free;
  memory.overhead = now > before + arenas ? now - before - arenas : 0;
  return memory;
}

} // namespace ds::rt::cuda
