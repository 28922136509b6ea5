//===- Driver.cpp - Opens the CUDA driver ------------------------------------------===//
#include "Driver.h"

#include "Library.h"

namespace ds::rt::cuda {
namespace {

constexpr const char *kInstall = "install NVIDIA's driver 580 or later (CUDA 13.0), or run with --device cpu";

Error tooOld(const Driver &driver, const std::string &why) {
  int version = 0;
  const bool known = driver.driverGetVersion && driver.driverGetVersion(&version) == CUDA_SUCCESS;
  return Error{ExitCode::Device,
               fmt::format("the NVIDIA driver is too old: it supports CUDA {}, but {} is needed{}",
                           known ? spellVersion(version) : "of an unknown version", spellVersion(kNeededCuda),
                           why),
               kInstall};
}

Result<const Driver *> open() {
  static Driver driver;
  const Result<void *> library = openLibrary({"DS_CUDA_DRIVER",
                                              {"libcuda.so.1"},
                                              "--device cuda: no CUDA device: NVIDIA's driver is missing:",
                                              kInstall});
  if (!library)
    return library.error();
  std::string missing;
#define DS_CUDA_FIND(FUNCTION, MEMBER) find(*library, DS_SYMBOL(FUNCTION), driver.MEMBER, missing);
  DS_CUDA_FUNCTIONS(DS_CUDA_FIND)
#undef DS_CUDA_FIND
  if (!missing.empty())
    return tooOld(driver, fmt::format(" (it has no {})", missing));
  if (const CUresult result = driver.init(0); result != CUDA_SUCCESS) {
    Error error = asError(driver, result, "--device cuda: no CUDA device");
    error.hint = "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or run with --device cpu";
    return error;
  }
  int version = 0;
  if (driver.driverGetVersion(&version) != CUDA_SUCCESS || version < kNeededCuda)
    return tooOld(driver, "");
  return &driver;
}

} // namespace

Result<const Driver *> openDriver() {
  static const Result<const Driver *> driver = open();
  return driver;
}

std::string spellVersion(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string spell(const Driver &driver, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.getErrorName(result, &name) != CUDA_SUCCESS || !name)
    return fmt::format("CUDA error {}", static_cast<int>(result));
  driver.getErrorString(result, &text);
  return fmt::format("{} ({})", text ? text : "error", name);
}

Error asError(const Driver &driver, CUresult result, const std::string &what) {
  const char *hint = "";
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    hint = "end other processes on the device, or compile with a smaller --memory";
    break;
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    hint = "look at dmesg and nvidia-smi: the device may need a reset by its administrator";
    break;
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    hint = "compile the model again with --target of this device, and keep the driver up to date";
    break;
  default:
    break;
  }
  return Error{ExitCode::Device, fmt::format("{}: {}", what, spell(driver, result)), hint};
}

} // namespace ds::rt::cuda
