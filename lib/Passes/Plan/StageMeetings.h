//===- StageMeetings.h - What stages of a module have with each other -----------===//
#ifndef DS_LIB_PASSES_PLAN_STAGEMEETINGS_H
#define DS_LIB_PASSES_PLAN_STAGEMEETINGS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// Verifies that stages send what others receive, and that none waits for ever, over the segments and
/// schedules of `module` (E7). Names the first command that is wrong.
LogicalResult verifyStageMeetings(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_PLAN_STAGEMEETINGS_H
