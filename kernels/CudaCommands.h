//===- CudaCommands.h - Library commands as launches of CUDA kernels -----------===//
//
// cudaLaunches() says which entries of ds_kernels.fatbin a library command is, for operands that
// verifyProgram has accepted; it looks at no data and needs no part of CUDA.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_CUDACOMMANDS_H
#define DS_KERNELS_CUDACOMMANDS_H

#include "CudaCalls.h"
#include "ds/Kernels/Kernels.h"

#include <vector>

namespace ds::rt::cuda {

struct CudaLaunch {
  const char *entry; ///< name in the fatbin
  uint32_t blocks, threads;
  uint32_t sharedBytes;                ///< dynamic; above 48 KiB the entry's limit must be raised
  std::vector<unsigned char> argument; ///< the struct
};

/// What `fn` is, in order. Of a product that is what comes after it where its activation is GELU or GELU's
/// gradient, else nothing. A launch of no blocks is left out.
std::vector<CudaLaunch> cudaLaunches(LibraryFn fn, const LibraryCall &call);

/// What the kernels of attention take, for either of its commands.
AttentionCall attentionCall(LibraryFn fn, const LibraryCall &call);

/// Probabilities of an attention: some samples, query heads, queries and keys. Of more samples than one, all
/// heads.
struct ProbabilityRange {
  int64_t sample, samples, head, heads, query, queries, key, keys;
};

/// The launch that draws what dropout leaves of the probabilities of `range`, of 16 bits. Those that no query
/// sees are 0.
CudaLaunch attentionMaskLaunch(const AttentionCall &call, const ProbabilityRange &range, void *mask,
                               DType dtype);

/// The launch that adds the parts which a block of attention's gradient gives, of 16 bits.
CudaLaunch attentionPartsLaunch(const AttentionPartsCall &call, DType dtype);

/// The launch that adds slopes times a distance to logarithms of sums.
CudaLaunch attentionShiftLaunch(const AttentionShiftCall &call);

/// The launch that fills `data`, memory of the device, with the random numbers of `call`, whose own data are
/// not looked at; of f32, bf16 or f16, rounded once. None if there are none.
std::vector<CudaLaunch> cudaLaunches(const RandomCall &call, void *data, DType dtype);

} // namespace ds::rt::cuda

#endif // DS_KERNELS_CUDACOMMANDS_H
