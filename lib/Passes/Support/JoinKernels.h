//===- JoinKernels.h - Two launches that follow one another as one --------------===//
//
// The kernel of both has both bodies, the second on what the first yields; nothing that one of them stores is
// left out. What is asked here knows no reason for it: that code generation has such a kernel, and that no
// operand says more than the body, is the caller's to see.
//
//     launch @a ins(x) outs(y)                 launch @a_b ins(x, z) outs(y, w)
//     launch @b ins(y, z) outs(w)      ->
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_JOINKERNELS_H
#define DS_LIB_PASSES_SUPPORT_JOINKERNELS_H

#include "ds/Passes/BufferAccess.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::ds {

/// Of each input of a launch which result of the launch before it is; none: something else.
using Sources = std::vector<std::optional<size_t>>;
Sources findSources(LaunchOp first, LaunchOp second);

/// What `second` reads that is none of its `sources`.
SmallVector<BufferAccess> readsBeside(LaunchOp second, const Sources &sources);

/// Whether nothing but its operands says what the launch does, and it is on stream compute.
bool isPlain(LaunchOp launch);

/// The launch that is the next command after `first`, where both are plain and of one work; null where not.
LaunchOp findNext(LaunchOp first);

/// A kernel, outside the module, that does what `first` does and then what `second` does: over the inputs of
/// the first, those of the second that are no `sources`, and all outputs.
KernelOp joinKernels(KernelOp first, KernelOp second, const Sources &sources);

/// Replaces both launches, in the second's place, by one of `kernel`, which joinKernels made of theirs.
LaunchOp joinLaunches(LaunchOp first, LaunchOp second, const Sources &sources, KernelOp kernel);

/// Whether a launch of `kernel` computes two stages (ds/Codegen/KernelStages.h).
bool hasTwoStages(KernelOp kernel);

/// Removes those of `kernels` that nothing launches.
void eraseIdle(const llvm::SetVector<Operation *> &kernels, ModuleOp module, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_JOINKERNELS_H
