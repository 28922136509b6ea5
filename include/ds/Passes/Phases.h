//===- Phases.h - In which phase a module is, and what a pass asks of it --------===//
//
// A module says its phase (ds.phase); passes that cross a border say the new one. A module that says nothing
// is in any phase in which all its ops may stand, so that a pass can be tried on a few lines of IR.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_PHASES_H
#define DS_PASSES_PHASES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// The phases that `op`, a module or a function, can be in: what its module says, and what the ops, arguments
/// and segments of `op` allow. Of a function only the function is looked at: others may be changing. Fails
/// with a diagnostic at the first op that belongs to none of the phases that are left.
FailureOr<PhaseRange> findPhases(Operation *op);

/// The phase that `module` says it is in; where it says nothing, the first that it can be in. Fails as
/// findPhases does.
FailureOr<Phase> phaseOf(ModuleOp module);

/// For a pass named `pass` ("ds-bufferize") that works on `op` in the phases `wanted`: fails with one
/// diagnostic where `op` cannot be in one of them, and tells the pipelines that lead there. What is wrong
/// with the module is said once: by the first of its functions where `op` is a function.
LogicalResult requirePhase(Operation *op, StringRef pass, PhaseRange wanted);
inline LogicalResult requirePhase(Operation *op, StringRef pass, Phase wanted) {
  return requirePhase(op, pass, {wanted, wanted});
}

/// Says that `module` is now in `phase`.
void setPhase(ModuleOp module, Phase phase);

} // namespace mlir::ds

#endif // DS_PASSES_PHASES_H
