//===- CudnnAttention.h - Attention as graphs that cuDNN has engines for ------------===//
//
// cuDNN recognises attention by its parts: product, scale, mask, softmax, product; and backwards the flash
// attention of Dao et al. (arXiv:2205.14135) with the scores recomputed from the rows' log-sum-exp. The
// gradient of the queries is written by the product itself, not added up by its tiles: that is what makes
// two runs equal in every bit. A fast gradient is added up by the tiles, in f32 memory, as they come: memory
// between the product and its result is how the library is told.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNATTENTION_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNATTENTION_H

#include "CudnnGraph.h"

#include "../../../../kernels/CudaCalls.h"

namespace ds::rt::cuda {

/// One piece of an attention command: sizes and strides of `call`, whose addresses are not looked at, over
/// `batch` samples and `groups` key heads.
struct AttentionShape {
  const AttentionCall &call;
  int64_t batch, groups;
  cudnnDataType_t type; ///< of all but lse
  bool gradient;
  bool fast;   ///< a gradient may be added up in any order
  bool masked; ///< a mask in memory is added to the scores, the same one for samples or heads of stride 0

  /// Of the positions on both sides of a query some are out of its sight, though they are there.
  bool hasWindow() const { return call.before < call.queries + call.keys - 1; }
  int64_t heads() const { return groups * (call.heads / call.groups); }
};

/// Which tensor an execution brings.
enum class AttentionTensor {
  Q,
  K,
  V,
  Out,
  Lse,
  Dout,
  Dq,
  Dk,
  Dv,
  Mask,
  RowSums,
  QuerySums,
  Scale,
  One,
  MinusInfinity,
  Cap,
  Slopes,
  Kept,
  KeptFactor,
  KeptShare,
  Shift,
  Reach
};

/// The graph of a piece; its tensors by AttentionTensor. RowSums is packed f32 memory, one for each query of
/// each head; QuerySums f32 memory of a fast gradient, an element for each of the queries', 0 before; Slopes
/// f32 memory, one for each head; Kept memory of the shape's type, 1 or 0 for each probability. Scale, One,
/// MinusInfinity and Cap are f32 in host memory, as are KeptFactor and its reciprocal, KeptShare, where Shift
/// and Reach are i32: a query sees the key that many behind its own number, and with a window one more than
/// that many before it. Fails with what the library refuses to describe.
Result<NamedGraph> describeAttention(const Cudnn &cudnn, const AttentionShape &shape);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNATTENTION_H
