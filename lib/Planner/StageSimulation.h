//===- StageSimulation.h - When the stages of a planned step run what --------------------===//
//
// Each stage runs the entries of its schedule lane by lane; one begins when those before it on its lane and
// those that it waits for on others are over, and a message when both of its ends have come to it. Segments
// take what a simulation of their commands says (StepSimulation.h).
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_STAGESIMULATION_H
#define DS_LIB_PLANNER_STAGESIMULATION_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds {

/// One stage in one step.
struct StageRun {
  double computeSeconds = 0; ///< of its segments that are no transfers
  double endSeconds = 0;     ///< of all of them
};

/// The stages, planned, in order. Nothing where messages stand in segments that compute: such stages wait
/// inside.
std::optional<SmallVector<StageRun>> simulateStages(ArrayRef<ModuleOp> stages,
                                                    const ::ds::cost::Rates &rates);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_STAGESIMULATION_H
