//===- PlanFitter.h - One step planned until it fits --------------------------------===//
//
// See PlanFitter.cpp for the problem and the idea.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_PLANFITTER_H
#define DS_LIB_PLANNER_PLANFITTER_H

#include "Expected.h"
#include "ds/Planner/PlanModel.h"

namespace mlir::ds {

/// Gradients of attention for which cuDNN has no workspace.
struct Lack {
  int64_t calls = 0;
  int64_t bytes = 0; ///< that one of them is short of, at most
};

/// What became of a plan.
struct Outcome {
  int64_t excess = 0; ///< bytes of the arena beyond the limit
  int64_t live = 0;   ///< most bytes that are live at once
  Lack lack = {};     ///< of what cuDNN needs for attention

  bool fits() const { return excess == 0; }
  /// A limit of what is live with which the next plan should fit, if the packing loses as much again.
  int64_t tighten(int64_t limit) const { return std::max<int64_t>(1, std::min(limit, live) - excess); }
};

/// Plans copies of one step.
class PlanFitter {
public:
  /// Plans must fit `memory`, bytes of the device; 0: no limit. `resident`, if there is one: what is to be
  /// planned first, in phase resident.
  PlanFitter(int64_t memory, const PipelineOptions &options, RunPipeline run, OwningOpRef<ModuleOp> resident)
      : memory(memory), options(options), run(run), resident(std::move(resident)) {}

  /// Plans `step`, which is in phase `from`, with as much memory for gathers and for pieces of attention as
  /// fits.
  LogicalResult plan(ModuleOp step, Phase from);
  /// The same of a plan that holds as little as can be.
  LogicalResult planLeast(ModuleOp step, Phase from);
  bool fits() const { return !isTooLarge(getArena()); }
  int64_t getArena() const { return arenaBytes(*best); }
  OwningOpRef<ModuleOp> takeBest();

private:
  bool isTooLarge(int64_t bytes) const { return memory > 0 && bytes > memory; }
  /// Whether what the best plan's buffers need is beyond the memory, whatever is held by choice beside them.
  bool isOutOfReach() const;
  /// Brings `step` to what one rank does, of which no memory has decided anything yet.
  LogicalResult makeSharded(ModuleOp step, Phase from);
  /// Brings that to buffers in issue order, with so much for what is kept of the forward.
  LogicalResult makeBuffers(int64_t forResident);
  /// Makes buffers, more than once where the first choice of what to keep was off, and plans them.
  FailureOr<Outcome> planResident();
  /// Plans them with so much for gathers and for workspaces.
  FailureOr<Outcome> planWith(int64_t forGathers, int64_t forWorkspaces);
  /// Finds workspaces with which a plan fits that holds nothing by choice, from what became of such a plan
  /// with `forWorkspaces`. True where there are such.
  FailureOr<bool> fitWorkspaces(Outcome outcome, int64_t &forWorkspaces);

  const int64_t memory;
  const PipelineOptions &options;
  RunPipeline run;
  OwningOpRef<ModuleOp> resident; ///< until it is planned
  OwningOpRef<ModuleOp> sharded, buffers;
  Phase reached = Phase::Model; ///< of `sharded`: a later one where the step came so
  OwningOpRef<ModuleOp> best;   ///< of those that fit with the fewest lacks the last, else the smallest
  int64_t bestLacks = 0;
};

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_PLANFITTER_H
