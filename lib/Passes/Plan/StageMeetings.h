//===- StageMeetings.h - What stages of a model have with each other ------------===//
#ifndef DS_LIB_PASSES_PLAN_STAGEMEETINGS_H
#define DS_LIB_PASSES_PLAN_STAGEMEETINGS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// Verifies that stages send what others receive, and that none waits for ever, over the segments and
/// schedules of `modules`: all stages of a pipeline, or one module that has the segments of several (E7).
/// Names the first command that is wrong. Where modules have meshes they have the same.
LogicalResult verifyStageMeetings(ArrayRef<ModuleOp> modules);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_PLAN_STAGEMEETINGS_H
