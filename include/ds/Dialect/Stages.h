//===- Stages.h - The stages of a pipeline, each a module of its own ---------------===//
//
// A model that is cut into stages is a module of modules. Each stage has what a model of one piece has: its
// mesh, states, functions and schedule; passes run on it as they do on that. What stages have in common is
// that they declare one mesh, and that their segments and schedules say one number each.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_DIALECT_STAGES_H
#define DS_DIALECT_STAGES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Whether `module` is cut into stages: modules are nested in it.
bool hasStages(ModuleOp module);

/// The stages of `module`, by their numbers; of one that is not cut itself alone. What ds-verify-stages
/// refuses comes in some order.
SmallVector<ModuleOp> getStages(ModuleOp module);

/// The number that the first segment of `stage` says, or else its first schedule; nothing where there is
/// neither.
std::optional<int64_t> findStageNumber(ModuleOp stage);

/// Whether `forward`, in phase model, is that of a stage of a pipeline.
bool isStage(func::FuncOp forward);
/// Whether it returns the loss: that of a model of one piece, or of the last stage, does.
bool givesLoss(func::FuncOp forward);

} // namespace mlir::ds

#endif // DS_DIALECT_STAGES_H
