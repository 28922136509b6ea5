//===- CudnnAttention.h - Attention as graphs that cuDNN has engines for ------------===//
//
// cuDNN recognises attention by its parts: product, scale, mask, softmax, product; and backwards the flash
// attention of Dao et al. (arXiv:2205.14135) with the scores recomputed from the rows' log-sum-exp. The
// gradient of the queries is written by the product itself, not added up by its tiles: that is what makes
// two runs equal in every bit.
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
  bool masked; ///< a mask in memory is added to the scores, the same one for samples or heads of stride 0

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
  Scale,
  One,
  MinusInfinity,
  Shift
};

/// The graph of a piece; its tensors by AttentionTensor. RowSums is packed f32 memory, one for each query of
/// each head; Scale, One and MinusInfinity are f32 in host memory, where Shift is an i32: how many more keys
/// than queries there are under a causal mask. Fails with what the library refuses to describe.
Result<NamedGraph> describeAttention(const Cudnn &cudnn, const AttentionShape &shape);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNATTENTION_H
