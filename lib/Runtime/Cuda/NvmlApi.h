//===- NvmlApi.h - The part of nvml.h that is needed -------------------------------===//
//
// NVML comes with the driver, its header not with the toolkit: types and functions as its documentation has
// them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_NVMLAPI_H
#define DS_LIB_RUNTIME_CUDA_NVMLAPI_H

extern "C" {

using nvmlDevice_t = struct nvmlDevice_st *;

struct nvmlMemory_t {
  unsigned long long total, free, used;
};

/// nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v3 fills.
struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory; ///< bytes; all ones: not known
  unsigned int gpuInstanceId, computeInstanceId;
};

int nvmlInit_v2();
int nvmlSystemGetDriverVersion(char *, unsigned int);
int nvmlDeviceGetHandleByPciBusId_v2(const char *, nvmlDevice_t *);
int nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t *);
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *);

} // extern "C"

#endif // DS_LIB_RUNTIME_CUDA_NVMLAPI_H
