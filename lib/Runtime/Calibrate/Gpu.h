//===- Gpu.h - What the parts of a GPU's calibration share ------------------------===//
#ifndef DS_LIB_RUNTIME_CALIBRATE_GPU_H
#define DS_LIB_RUNTIME_CALIBRATE_GPU_H

#include "Figures.h"
#include "GpuBench.h"

#include "ds/Runtime/Calibrate/Calibrate.h"

#include <cstdio>

namespace ds::rt {

/// One calibration of a GPU. What a part finds is told at once, line by line, so that a part which ends the
/// process costs only itself.
struct GpuCalibration {
  bool quick = false;
  DeviceOptions device;
  Figures figures;
  std::string date, gpu;
  std::FILE *log = nullptr; ///< null: none is written

  /// A measurement by name, its value in its unit and as people read it.
  void tell(const std::string &figure, double value, const std::string &text, double spread);
  /// "measured 2026-11-21, NVIDIA H200, spread 3 %".
  std::string provenance(double spread) const;
};

Status measureGpuLaunches(GpuCalibration &calibration);
Status measureGpuCopies(GpuCalibration &calibration);
Status measureGpuHost(GpuCalibration &calibration);
Status measureGpuContext(GpuCalibration &calibration);
Status measureGpuProducts(GpuCalibration &calibration, DType dtype);
Status measureGpuRows(GpuCalibration &calibration);
Status measureGpuFunctions(GpuCalibration &calibration);
Status measureGpuAttention(GpuCalibration &calibration);

/// The built-in description that is most like a GPU of this name and memory in bytes.
std::string builtinFor(const std::string &gpu, uint64_t memory);

/// Adds attention forward and backward to a bench, on heads of so many elements.
struct AttentionCalls {
  uint32_t forward, backward;
};
AttentionCalls addAttention(GpuBench &bench, int64_t batch, int64_t length, int64_t heads, int64_t width);

/// "3.01e+14 op/s" with prefixes: "301 Top/s".
std::string spellRate(double rate, const char *unit);

/// "4.1 us".
std::string spellSeconds(double seconds);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CALIBRATE_GPU_H
