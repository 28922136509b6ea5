//===- CudaCalls.h - The kernels of the CUDA library and how they are launched -===//
//
// Every entry of ds_kernels.fatbin takes one of these structs by value. Addresses are of the device, strides
// in elements. cudaLaunches() says which entries a library command is, for operands that verifyProgram has
// accepted; it looks at no data and needs no part of CUDA.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_KERNELS_CUDACALLS_H
#define DS_KERNELS_CUDACALLS_H

#include <stdint.h>
#include <string.h>

namespace ds::rt {
struct LibraryCall;
struct RandomCall;
enum class LibraryFn : uint16_t;
} // namespace ds::rt

namespace ds::rt::cuda {

struct EmbeddingCall {
  const void *table; ///< forward: rows to look up; backward: gradients of the rows that were looked up
  const void *ids;
  void *out; ///< forward: packed rows; backward: the table's gradient
  int64_t numIds, rows, width;
  int64_t tableStride; ///< of the table, or of its gradient
  int32_t wideIds;     ///< ids are i64, else i32
  int32_t floatTable;  ///< backward: the table's gradient is f32, else of the entry's type
};

struct CrossEntropyCall {
  const void *logits, *targets;
  void *dlogits;
  float *loss, *lse, *count;
  const float *dloss;
  const float *denominator;            ///< forward: what the sum is divided by; null: the count
  int64_t rows, size, stride, dstride; ///< of logits and dlogits
  int64_t ignoreIndex;
  int32_t wideIds;
};

/// Strided memory: dimensions are merged where memory makes one of several.
struct WalkCall {
  static constexpr int kMaxRank = 8;
  const void *from; ///< null: `value` is written
  void *to;
  uint64_t value; ///< bits of one element
  int64_t count;
  int64_t shape[kMaxRank], fromStrides[kMaxRank], toStrides[kMaxRank];
  int32_t rank;
};

struct FillRandomCall {
  float *data;
  int64_t first, count;
  uint64_t seed, stream;
  float offset, scale;
  int32_t normal;
};

/// [batch, row, head, element]; the last has stride 1.
struct Heads {
  void *data;
  int64_t batchStride, rowStride, headStride;
};
struct AttentionCall {
  Heads q, k, v, out, dout, dq, dk, dv;
  float *lse;
  const float *mask;
  int64_t lseStrides[3], maskStrides[3]; ///< of batch, head and query; 0 where the mask repeats
  int32_t batch, queries, keys, heads, groups, size;
  int32_t causal;
  float scale;
};

/// A convolution's two operands and its result, packed, in the order of its command. Three sliding
/// dimensions: where there are fewer, sizes and windows of 1 come first.
struct ConvCall {
  const void *first, *second, *bias; ///< bias: forward, or null
  void *result;
  int64_t count; ///< elements of the result
  int64_t batch, groups, inputChannels, outputChannels;
  int64_t input[3], window[3], output[3], stride[3], padding[3], dilation[3];
};

struct CudaLaunch {
  const char *entry; ///< name in the fatbin
  uint32_t blocks, threads;
  uint32_t sharedBytes;   ///< dynamic; above 48 KiB the entry's limit must be raised
  uint32_t argumentBytes; ///< of the struct
  alignas(8) unsigned char argument[sizeof(AttentionCall)];
};

/// Launches of one command at most.
constexpr unsigned kMaxCudaLaunches = 4;

/// Fills `launches` with what `fn` is, in order, and returns their number; 0 for what is no kernel of this
/// library (Matmul). No command needs a workspace here. A launch of no blocks is left out.
unsigned cudaLaunches(LibraryFn fn, const LibraryCall &call, CudaLaunch *launches);

/// What the kernels of attention take, for either of its commands.
AttentionCall attentionCall(LibraryFn fn, const LibraryCall &call);

/// The launch that fills device memory with random numbers; 0 if there are none.
unsigned cudaLaunches(const RandomCall &call, CudaLaunch *launches);

} // namespace ds::rt::cuda

#endif // DS_KERNELS_CUDACALLS_H
