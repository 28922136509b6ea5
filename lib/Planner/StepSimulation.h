//===- StepSimulation.h - When the commands of a planned step run ----------------------===//
//
// Each segment of a planned module, simulated over its streams at the rates of a cluster. All streams meet at
// the end of a segment, so a step takes as long as its segments one after the other.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_STEPSIMULATION_H
#define DS_LIB_PLANNER_STEPSIMULATION_H

#include "ds/Cost/Rates.h"
#include "ds/Cost/Simulate.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Report/PlanReport.h"

namespace mlir::ds {

/// One segment and when its commands run, from its start.
struct SegmentSimulation {
  ScheduledFunction scheduled;
  ::ds::cost::Simulation simulation; ///< streams as in StepSimulation
  int64_t runs = 0;                  ///< times that a step executes it
  /// For each command, and for the end, when the compute stream has passed all commands before it.
  std::vector<double> reached;
};

struct StepSimulation {
  SmallVector<StreamKind> streams; ///< that commands are on, compute first
  std::vector<SegmentSimulation> segments;

  /// The same of all runs together.
  double sum(llvm::function_ref<double(const SegmentSimulation &)> figure) const;
};

/// Simulates the segments of `module` (phase scheduled or planned).
StepSimulation simulateStep(ModuleOp module, const ::ds::cost::Rates &rates);
/// The same, where that becomes of updates that go early.
StepSimulation simulateStep(ModuleOp module, const ::ds::cost::Rates &rates, EarlyUpdates early);

/// What the step is made of, in seconds, with the cluster's figures behind it. `flops` are those of one rank.
::ds::report::Prediction predictStep(ModuleOp module, const ::ds::cost::Rates &rates, double flops);

/// Seconds of that step, at the rates of `cluster`; 0 where nothing is predicted. Fails with a diagnostic
/// where there is no such cluster.
FailureOr<double> predictSeconds(ModuleOp planned);

/// A sentence on what updates that do not wait for the norm win and risk; empty where all of them wait.
std::string describeSpeculation(ModuleOp module, const ::ds::cost::Rates &rates);

/// A sentence on updates that are left to the next step; empty where none are.
std::string describeLateUpdates(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_STEPSIMULATION_H
