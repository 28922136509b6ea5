//===- AttentionWorkspace.h - What attention's gradient takes of the plan ---------===//
#ifndef DS_PASSES_ATTENTIONWORKSPACE_H
#define DS_PASSES_ATTENTIONWORKSPACE_H

#include "ds/Dialect/Emitter.h"
#include "ds/Runtime/Program/AttentionPieces.h"

namespace mlir::ds {

/// Whether cuDNN has no engine for such a gradient of attention on the GPU that `module` is for: before sm_90
/// none has a cap, nor heads of more than 128 elements.
bool lacksGradientEngine(ModuleOp module, bool hasCap, int64_t headSize);

/// Whether an attention or its gradient has what cuDNN is not asked for: slopes where there are more keys
/// than queries.
template <typename AttentionOpT>
bool hasScoreForm(AttentionOpT op) {
  return op.getSlopes() && tensorType(op.getQuery()).getDimSize(1) != tensorType(op.getKey()).getDimSize(1);
}

/// The sizes of an attention or its gradient.
template <typename AttentionOpT>
::ds::rt::AttentionSizes sizesOf(AttentionOpT op) {
  auto size = [](Value value, unsigned dim) {
    return static_cast<uint64_t>(tensorType(value).getDimSize(dim));
  };
  const Value query = op.getQuery(), key = op.getKey();
  return {size(query, 0), size(query, 1), size(key, 1), size(query, 2), size(key, 2), size(query, 3)};
}

/// As above, of an op of tensors.
inline bool lacksGradientEngine(AttentionGradOp op) {
  return lacksGradientEngine(op->getParentOfType<ModuleOp>(), op.getCap().has_value(),
                             tensorType(op.getQuery()).getDimSize(3));
}

/// How cuDNN computes `op` in pieces of at most `usual` bytes where it can (AttentionPieces.h). Nothing for
/// what is no attention, or none that cuDNN is asked for.
std::optional<::ds::rt::AttentionPieces> cudnnPieces(CallOp op, uint64_t usual);

/// The largest workspace that a gradient of attention in `module` asks for, with pieces of at most `usual`
/// bytes where that can be; 0 if cuDNN is asked for none, or the module is not for CUDA.
uint64_t gradientWorkspaceBytes(ModuleOp module, uint64_t usual);

/// Whether `op` is an attention, or its gradient, that drops probabilities.
bool hasDropout(CallOp op);

/// Whether the gradient of attention `op` may be added up in any order.
bool isFastGradient(CallOp op);

/// Bytes of the usual workspace of a gradient of attention that cuDNN is asked for, were it fast or not.
uint64_t usualWorkspaceBytes(CallOp op, bool isFast);

/// Whether the runtime's own kernels compute `command`, in f32, for want of the workspace that cuDNN asks
/// for. Workspaces must have been assigned.
bool lacksWorkspace(Operation *command);

/// Whether the runtime's own kernels compute an attention on CUDA, in f32: cuDNN is not asked for it, or the
/// workspace is missing that it wants. Requires an attention.
bool isByOwnKernel(CallOp call);

/// Why the runtime's own kernels compute an attention of 16 bits on CUDA, in f32, whatever memory there is;
/// nothing for what cuDNN is asked, and for what is no such attention.
std::optional<::ds::rt::AttentionRefusal> cudnnRefusal(CallOp call);

/// Gradients of attention in `module` that cuDNN is asked for; none where it is not for CUDA.
SmallVector<CallOp> findCudnnGradients(ModuleOp module);

} // namespace mlir::ds

#endif // DS_PASSES_ATTENTIONWORKSPACE_H
