//===- Nvml.h - Who holds a device's memory -----------------------------------------===//
//
// NVML comes with the driver. Everything works without it, with less to tell.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_NVML_H
#define DS_LIB_RUNTIME_CUDA_NVML_H

#include <cstdint>
#include <optional>
#include <string>

namespace ds::rt::cuda {

/// Bytes in use on the device of a PCI address by all processes, contexts included.
std::optional<uint64_t> usedMemory(const std::string &busId);

/// Of the driver: "580.65.06".
std::optional<std::string> driverVersion();

/// "process 4711 (python3) holds 70.1 GiB, process 12 holds 1.0 GiB"; empty if it cannot be told.
std::string describeHolders(const std::string &busId);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_NVML_H
