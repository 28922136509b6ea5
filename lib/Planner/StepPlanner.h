//===- StepPlanner.h - One step: chosen, then placed ---------------------------------===//
//
// Problem: a step can be made in several forms (losses whole or in pieces, gradients reduced once or in each
// micro-step), of each form it can be chosen in many ways what memory holds, and only what is placed is a
// plan. Idea: what is live is known from fused IR before anything is chosen (SegmentMemory.h), so forms are
// compared by their choices, and one is placed. What the packing and the streams take beyond that is known
// then: where the plan does not fit, or leaves much for which time was given up, it is chosen once more with
// that much less or more; at last as little is held as can be. No step is placed more than three times. Where
// the device waits for the host's updates, the last place is for the same choice with updates beside the next
// step's forward.
//
//   form        what the ops are           model -> fused, once a form
//   choose      what is kept of it         fused -> resident, once a budget
//   place       where everything lies      resident -> planned, three times at most
//
// Example, with figures made up: on a device of 14 GiB the whole loss is chosen in 13.9 GiB with 12 layers
// recomputed, 4 pieces in 13.9 with 9. The pieces are placed, take 13.9 GiB, and that is the plan.
//
// The price: two forms whose choices take nearly the same are not both placed to find the better one.
//
//===---------------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_STEPPLANNER_H
#define DS_LIB_PLANNER_STEPPLANNER_H

#include "ds/Dialect/Decisions.h"
#include "ds/Planner/PlanModel.h"

#include <map>

namespace mlir::ds {

/// How losses are made that offer pieces.
struct LossForm {
  std::optional<int64_t> rows = {}; ///< of a piece; nothing: whole
  auto operator<=>(const LossForm &) const = default;
};

/// How a step is made before anything of it is chosen.
struct StepForm {
  LossForm loss = {};
  bool reducesInEach = false; ///< gradients in each micro-step, where the configuration leaves that open
  auto operator<=>(const StepForm &) const = default;
};

/// What was chosen of a form.
struct ChosenStep {
  StepForm form;
  OwningOpRef<ModuleOp> resident;
  Residency residency;                  ///< nothing of a module that came in phase resident or later
  std::vector<OpenChoice> choices = {}; ///< that were made beside what passes say

  /// Whether time was given up for memory.
  bool hasPaid() const;
  /// Whether it is better than `other`: it fits, takes less time, and where neither fits less memory.
  bool isBetterThan(const ChosenStep &other) const;
};

/// What became of a plan.
struct PlacedStep {
  StepForm form;
  std::vector<OpenChoice> choices; ///< as of what was chosen
  OwningOpRef<ModuleOp> planned;
  OwningOpRef<ModuleOp> resident = {}; ///< of what it was made, where when updates run is still to be chosen
  PlacementRequest request = {};       ///< with which it was
  int64_t arenaBytes = 0, liveBytes = 0; ///< of the device: of the arena, and live at once
  int64_t slowCalls = 0;                 ///< gradients of attention for which cuDNN has no workspace
  int64_t lackBytes = 0;                 ///< that one of them is short of, at most

  /// Whether one of the choices is of `kind`.
  bool has(ChoiceOf kind) const;
};

/// The choices and plans of one module.
class StepPlanner {
public:
  /// `module` is in any phase before planned, and stays as it is.
  StepPlanner(ModuleOp module, Phase from, const PipelineOptions &options, RunPipeline run);

  /// The fastest plan that fits of those that it makes, else the smallest; with `asked`, of those with losses
  /// in that form. Each form is made once, however often this is asked.
  FailureOr<OwningOpRef<ModuleOp>> plan(std::optional<LossForm> asked = {});
  /// A plan in `form` that holds as little as can be at all moments.
  FailureOr<OwningOpRef<ModuleOp>> planLeast(const LeastForm &form);
  /// What is expected of such a plan, and its form. Losses that would be in pieces stay whole for that: what
  /// pieces of them would hold is described.
  FailureOr<int64_t> expectLeast(LeastForm &form);

private:
  // Forms (StepForms.cpp)
  FailureOr<ModuleOp> fusedOf(StepForm form);
  FailureOr<ChosenStep> choose(StepForm form, const ResidencyRequest &request);
  FailureOr<ChosenStep> chooseOpen(bool reducesInEach, const ResidencyRequest &request);
  FailureOr<ChosenStep> chooseLoss(bool reducesInEach, const ResidencyRequest &request);
  FailureOr<ChosenStep> choosePieces(ChosenStep joint, const ResidencyRequest &request);
  FailureOr<ChosenStep> chooseForm();
  // Plans (StepPlanner.cpp)
  FailureOr<PlacedStep> place(const ChosenStep &chosen, const PlacementRequest &request, bool late = false);
  LogicalResult tryPlace(const ChosenStep &chosen, const PlacementRequest &request, PlacedStep &best);
  LogicalResult chooseAnew(const ChosenStep &chosen, MemoryLimit limit, const PlacementRequest &request,
                           PlacedStep &best);
  LogicalResult shrink(const ChosenStep &chosen, PlacedStep &best);
  FailureOr<int64_t> tryNarrower(const ChosenStep &chosen, ChoiceOf kind, MemoryLimit limit,
                                 PlacedStep &best);
  LogicalResult narrow(const ChosenStep &chosen, int64_t off, PlacedStep &best);
  LogicalResult placeAgain(const ChosenStep &chosen, PlacedStep &best);
  LogicalResult chooseUpdates(PlacedStep &best);
  FailureOr<bool> isBetter(const PlacedStep &a, const PlacedStep &b) const;
  bool fits(const PlacedStep &placed) const { return !memory || placed.arenaBytes <= *memory; }

  ModuleOp module;
  const Phase from;
  const PipelineOptions options;
  RunPipeline run;
  const std::optional<int64_t> memory;             ///< bytes that a plan must fit
  std::map<StepForm, OwningOpRef<ModuleOp>> forms; ///< in phase fused, or in `from` where that is later
  std::optional<LossResidency> loss;               ///< what losses offer, if that is open or given
  std::optional<LossForm> lossForm;                ///< where that is not to be chosen
  int places = 0;                                  ///< that were made
};

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_STEPPLANNER_H
