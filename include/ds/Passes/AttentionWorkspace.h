//===- AttentionWorkspace.h - What attention's gradient takes of the plan ---------===//
#ifndef DS_PASSES_ATTENTIONWORKSPACE_H
#define DS_PASSES_ATTENTIONWORKSPACE_H

#include "ds/Dialect/Ds.h"
#include "ds/Runtime/Program/AttentionPieces.h"

namespace mlir::ds {

/// Whether an attention or its gradient has what cuDNN is not asked for: a window, a cap or slopes.
template <typename AttentionOpT>
bool hasScoreForm(AttentionOpT op) {
  return op.getWindow() || op.getCap() || op.getSlopes();
}

/// How cuDNN computes `op` in pieces of at most `usual` bytes where it can (AttentionPieces.h). Nothing for
/// what is no attention, or none that cuDNN is asked for.
std::optional<::ds::rt::AttentionPieces> cudnnPieces(CallOp op, uint64_t usual);

/// The largest workspace that a gradient of attention in `module` asks for, with pieces of at most `usual`
/// bytes where that can be; 0 if cuDNN is asked for none, or the module is not for CUDA.
uint64_t gradientWorkspaceBytes(ModuleOp module, uint64_t usual);

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
