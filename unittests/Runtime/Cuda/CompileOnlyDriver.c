/*===- CompileOnlyDriver.c - A driver that takes code and runs none ---------------===*/
/* cuDNN compiles engines for a device that is not there, but wants to hand the result to the driver. Built with
 * the driver's name, so that the library finds this one when it was opened before. cuInit fails: NVRTC then asks
 * for nothing more. */

#define ACCEPTS(FUNCTION)                                                                                    \
  int FUNCTION(void) { return 0; }
/* The first parameter is where a handle or a number goes. */
#define GIVES(FUNCTION, VALUE)                                                                               \
  int FUNCTION(void **out) {                                                                                 \
    *out = VALUE;                                                                                            \
    return 0;                                                                                                \
  }
#define COUNTS(FUNCTION, VALUE)                                                                              \
  int FUNCTION(int *out) {                                                                                   \
    *out = VALUE;                                                                                            \
    return 0;                                                                                                \
  }

static int thing;

int cuInit(unsigned flags) {
  (void)flags;
  return 100; /* no device */
}
int cuGetErrorName(int error, const char **name) {
  (void)error;
  *name = "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int error, const char **text) { return cuGetErrorName(error, text); }

GIVES(cuLibraryLoadData, &thing)
GIVES(cuLibraryLoadFromFile, &thing)
GIVES(cuLibraryGetKernel, &thing)
GIVES(cuLibraryGetModule, &thing)
GIVES(cuKernelGetFunction, &thing)
GIVES(cuModuleLoadData, &thing)
GIVES(cuModuleGetFunction, &thing)
GIVES(cuCtxGetCurrent, &thing)
COUNTS(cuDriverGetVersion, 13000)
COUNTS(cuDeviceGetCount, 1)
COUNTS(cuDeviceGet, 0)
COUNTS(cuFuncGetAttribute, 0)
COUNTS(cuKernelGetAttribute, 0)
COUNTS(cuOccupancyMaxPotentialClusterSize, 8)
ACCEPTS(cuLibraryUnload)
ACCEPTS(cuModuleUnload)
ACCEPTS(cuKernelSetAttribute)
ACCEPTS(cuFuncSetAttribute)
ACCEPTS(cuCtxGetLimit)
ACCEPTS(cuCtxPopCurrent)
ACCEPTS(cuCtxPushCurrent)
ACCEPTS(cuStreamGetCtx)
ACCEPTS(cuLinkCreate)
ACCEPTS(cuLinkAddData)
ACCEPTS(cuLinkComplete)
ACCEPTS(cuLinkDestroy)
ACCEPTS(cuLaunchHostFunc)
ACCEPTS(cuLaunchKernel)
ACCEPTS(cuLaunchKernelEx)
ACCEPTS(cuLaunchCooperativeKernel)
