//===- PlanRequest.h - What the planner asks of passes, and what they answer --------===//
//
// The configuration says what a step is to be. While the planner looks for a plan it asks for more: in what
// pieces losses are made, of how many bytes a choice may dispose. Pipelines hand that to the passes as these
// are made (Pipeline.h), and the answer is `residency` of the module's `ds.decisions`:
//
//   request    within 9 GiB, losses open, no activation on the host
//   answer     fits in 8.7 GiB and 41 ms, losses in pieces of 1,024 rows, groups of 4 values recomputed
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_PLANREQUEST_H
#define DS_PASSES_PLANREQUEST_H

#include "ds/Passes/WordOrNumber.h"

namespace mlir::ds {

/// What is asked of the choice of what memory holds (ds-rematerialize-cheap), which answers with `residency`
/// of `ds.decisions`.
struct ResidencyRequest {
  MemoryLimit memory = {};
  RecomputedGroups groups = {};
  bool opensLosses = false;      ///< losses may be made in the pieces that they offer
  bool keepsActivations = false; ///< none goes to the host, whatever the configuration leaves open
  bool recomputesCalls = true;   ///< products, attention and reductions too, where that is open
};

/// What is asked of the passes that give what was chosen its place and its time.
struct PlacementRequest {
  MemoryLimit streams = {};    ///< for what transfers have under way beside compute
  MemoryLimit workspaces = {}; ///< for workspaces that have several sizes
};

/// All that the planner asks of the pipelines.
struct PlanRequest {
  LossRows losses = {};
  bool reducesInEach = false; ///< gradients in each micro-step, where the configuration leaves that open
  ResidencyRequest residency = {};
  PlacementRequest placement = {};
};

} // namespace mlir::ds

#endif // DS_PASSES_PLANREQUEST_H
