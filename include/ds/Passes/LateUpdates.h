//===- LateUpdates.h - Updates that a step leaves to the next one --------------------===//
//
// What ds-rotate-updates makes of a module, as others see it. The schedule runs the segments that it always
// ran; two that update stand beside it:
//
//   @first, @last         what the schedule runs
//   @first_after_update   late updates, then what @first does: in its place where a step came before
//   @late_updates         late updates alone, for whoever reads states between two steps
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_LATEUPDATES_H
#define DS_PASSES_LATEUPDATES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// The segments of `module` that update and that its schedule does not run: one makes the updates that the
/// step before has left and then does what the first of the schedule does, in whose place it runs; the other
/// makes them alone. Null where none are left.
func::FuncOp getRotated(ModuleOp module);
func::FuncOp getFlush(ModuleOp module);

/// How often the schedule of its module says that a step runs `func`; in a module without one, once unless it
/// is no segment or an evaluation. runsPerStep says the same of a step that others come before.
int64_t scheduledRuns(func::FuncOp func);

/// Whether `state` holds what a step leaves for the updates that the next one begins with: its work is
/// `update`. It is of the schedule alone, nothing that is saved.
bool isCarried(StateOp state);

} // namespace mlir::ds

#endif // DS_PASSES_LATEUPDATES_H
