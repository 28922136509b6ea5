//===- Driver.h - The CUDA driver's functions, and what their errors mean --------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_DRIVER_H
#define DS_LIB_RUNTIME_CUDA_BINDING_DRIVER_H

#include "ds/Support/Error.h"

#include <cuda.h>

#include <string>

namespace ds::rt::cuda {

/// The first version of CUDA that a driver must support: that of the libraries that are opened beside it.
inline constexpr int kNeededCuda = 13000;

/// Every driver function that is used; cuda.h maps the names to versioned symbols.
#define DS_CUDA_FUNCTIONS(X)                                                                                 \
  X(cuInit, init)                                                                                            \
  X(cuDriverGetVersion, driverGetVersion)                                                                    \
  X(cuGetErrorName, getErrorName)                                                                            \
  X(cuGetErrorString, getErrorString)                                                                        \
  X(cuDeviceGetCount, deviceGetCount)                                                                        \
  X(cuDeviceGet, deviceGet)                                                                                  \
  X(cuDeviceGetName, deviceGetName)                                                                          \
  X(cuDeviceGetAttribute, deviceGetAttribute)                                                                \
  X(cuDeviceGetPCIBusId, deviceGetPCIBusId)                                                                  \
  X(cuDevicePrimaryCtxRetain, devicePrimaryCtxRetain)                                                        \
  X(cuDevicePrimaryCtxRelease, devicePrimaryCtxRelease)                                                      \
  X(cuCtxSetCurrent, ctxSetCurrent)                                                                          \
  X(cuMemGetInfo, memGetInfo)                                                                                \
  X(cuMemAlloc, memAlloc)                                                                                    \
  X(cuMemFree, memFree)                                                                                      \
  X(cuMemHostAlloc, memHostAlloc)                                                                            \
  X(cuMemFreeHost, memFreeHost)                                                                              \
  X(cuMemHostRegister, memHostRegister)                                                                      \
  X(cuMemHostUnregister, memHostUnregister)                                                                  \
  X(cuMemHostGetDevicePointer, memHostGetDevicePointer)                                                      \
  X(cuMemcpyAsync, memcpyAsync)                                                                              \
  X(cuMemcpy2DAsync, memcpy2DAsync)                                                                          \
  X(cuMemsetD8Async, memsetD8Async)                                                                          \
  X(cuMemsetD16Async, memsetD16Async)                                                                        \
  X(cuMemsetD32Async, memsetD32Async)                                                                        \
  X(cuMemsetD2D32Async, memsetD2D32Async)                                                                    \
  X(cuStreamCreateWithPriority, streamCreateWithPriority)                                                    \
  X(cuStreamDestroy, streamDestroy)                                                                          \
  X(cuStreamSynchronize, streamSynchronize)                                                                  \
  X(cuStreamQuery, streamQuery)                                                                              \
  X(cuStreamWaitEvent, streamWaitEvent)                                                                      \
  X(cuStreamWriteValue32, streamWriteValue32)                                                                \
  X(cuStreamBeginCapture, streamBeginCapture)                                                                \
  X(cuStreamEndCapture, streamEndCapture)                                                                    \
  X(cuGraphInstantiate, graphInstantiate)                                                                    \
  X(cuGraphDestroy, graphDestroy)                                                                            \
  X(cuGraphExecDestroy, graphExecDestroy)                                                                    \
  X(cuGraphLaunch, graphLaunch)                                                                              \
  X(cuEventCreate, eventCreate)                                                                              \
  X(cuEventDestroy, eventDestroy)                                                                            \
  X(cuEventRecord, eventRecord)                                                                              \
  X(cuEventElapsedTime, eventElapsedTime)                                                                    \
  X(cuModuleLoadDataEx, moduleLoadDataEx)                                                                    \
  X(cuModuleUnload, moduleUnload)                                                                            \
  X(cuModuleGetFunction, moduleGetFunction)                                                                  \
  X(cuFuncSetAttribute, funcSetAttribute)                                                                    \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, occupancyMaxActiveBlocksPerMultiprocessor)                  \
  X(cuLaunchHostFunc, launchHostFunc)                                                                        \
  X(cuLaunchKernel, launchKernel)

/// The driver's functions, as pointers.
struct Driver {
#define DS_CUDA_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_CUDA_FUNCTIONS(DS_CUDA_DECLARE)
#undef DS_CUDA_DECLARE
};

/// Opens the driver and starts it. Fails with ExitCode::Device: no driver, one that is too old (found and
/// needed version), or no device.
Result<const Driver *> openDriver();

/// "13.0" for 13000.
std::string spellVersion(int version);

/// What the driver calls an error: "illegal memory access (CUDA_ERROR_ILLEGAL_ADDRESS)".
std::string spell(const Driver &driver, CUresult result);

/// The error of a failed call, with a hint for those that a user can do something about.
Error asError(const Driver &driver, CUresult result, const std::string &what);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_DRIVER_H
