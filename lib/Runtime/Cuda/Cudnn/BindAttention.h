//===- BindAttention.h - An attention command as runs of cuDNN's engines ------------===//
//
// A command becomes runs of one engine over its pieces, or of a few engines over the blocks of a long one,
// each followed by a kernel that adds up what it gives (AttentionPieces.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_BINDATTENTION_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_BINDATTENTION_H

#include "CudnnEngines.h"
#include "CudnnSession.h"

namespace ds::rt::cuda {

/// As CudnnEngines::bind, of an attention or its gradient.
Result<EngineWork> bindAttention(CudnnSession &session, const Binding &binding, const Command &command,
                                 const LaunchBinder &launch);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_BINDATTENTION_H
