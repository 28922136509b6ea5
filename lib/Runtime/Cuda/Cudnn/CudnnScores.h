//===- CudnnScores.h - What becomes of scores by where they stand ------------------===//
//
// Rows are queries and columns keys, counted from 0 in each head, in the spelling that cuDNN has engines for.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSCORES_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSCORES_H

#include "CudnnGraph.h"

namespace ds::rt::cuda {

/// x where its row number, plus what the i32 scalar `shift` brings if there is one, is at least its column
/// number; else what `otherwise` brings.
CudnnGraph::Tensor keepLower(CudnnGraph &graph, const CudnnGraph::Tensor &x,
                             const CudnnGraph::Tensor &otherwise, const CudnnGraph::Tensor *shift = nullptr);

/// x where its column number, plus what the i32 scalar `reach` brings, is more than its row number; else what
/// `otherwise` brings.
CudnnGraph::Tensor keepNear(CudnnGraph &graph, const CudnnGraph::Tensor &x,
                            const CudnnGraph::Tensor &otherwise, const CudnnGraph::Tensor &reach);

/// x plus the slope of its head, of sizes [1, heads, 1, 1], times its column number less its row number.
CudnnGraph::Tensor addSlopes(CudnnGraph &graph, const CudnnGraph::Tensor &x,
                             const CudnnGraph::Tensor &slopes);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_CUDNNSCORES_H
