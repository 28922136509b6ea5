//===- AttentionOperands.h - An attention command's memory, as engines see it ------===//
#ifndef DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONOPERANDS_H
#define DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONOPERANDS_H

#include "CudnnAttention.h"

#include "Cuda/Binding/Binding.h"

#include "ds/Runtime/Program/AttentionPieces.h"

namespace ds::rt::cuda {

/// A command's operands, and how they are cut.
struct AttentionOperands {
  AttentionCall call; ///< of the whole command
  AttentionSizes sizes;
  AttentionForm form;
  AttentionPieces pieces;
  DType dtype;
  bool gradient;
  bool fast;               ///< a gradient in any order
  std::byte *workspace;    ///< null if none is planned
  uint64_t workspaceBytes; ///< that engines may use, behind the scratch of the pieces
};

/// Fails with why cuDNN does not compute `command`.
Result<AttentionOperands> readAttention(const Binding &binding, const Command &command);

/// Everything that an engine for `c`, a part of the command, depends on besides the device and the library.
std::string engineKey(const AttentionOperands &operands, const AttentionCall &c);

/// Numbers that the library reads when a run is started. The first query stands at the key `own`.
struct AttentionScalars {
  AttentionScalars(const AttentionCall &c, int64_t own);

  float scale, cap;
  int32_t shift, reach; ///< of the last key that a query sees behind its number, of the first before it
  float keptFactor, keptShare;
  float one = 1, minusInfinity;
};

/// Where the tensors of one run lie.
void *addressOf(AttentionTensor tensor, const AttentionCall &c, const AttentionOperands &operands,
                AttentionScalars &scalars);

/// Moves to the element so many behind the first, where there are any.
void move(Heads &heads, int64_t elements, DType dtype);

/// The command from a sample and a key head on: the addresses are those of their first rows.
AttentionCall pieceOf(AttentionCall c, int64_t batch, int64_t group, DType dtype);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_CUDNN_ATTENTIONOPERANDS_H
