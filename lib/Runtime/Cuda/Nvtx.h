//===- Nvtx.h - Ranges for profilers -----------------------------------------------===//
//
// NVTX is headers alone: without a profiler a range is a test of a pointer. Where the toolkit has no NVTX,
// there are no ranges.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_NVTX_H
#define DS_LIB_RUNTIME_CUDA_NVTX_H

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
inline int nvtxRangePushA(const char *) { return 0; }
inline int nvtxRangePop() { return 0; }
#endif

#endif // DS_LIB_RUNTIME_CUDA_NVTX_H
