//===- AnalyticSimulation.h - One micro-batch of a pipeline stage, command by command --------===//
#ifndef DS_LIB_PLANNER_ANALYTICSIMULATION_H
#define DS_LIB_PLANNER_ANALYTICSIMULATION_H

#include "ds/Planner/AnalyticReport.h"
#include "ds/Report/PlanTimeline.h"

namespace ds::planner {

/// The commands of one chunk of layers, forward and backward, and of the end of the step, when they run, and
/// where in their order the parts of each layer are.
struct StageSimulation {
  struct Layer {
    uint32_t forward = 0, backward = 0, end = 0; ///< places in `commands`
  };
  int64_t firstLayer = 0; ///< in the model
  std::vector<Layer> layers;
  uint32_t logits = 0;    ///< the place of the first command of the backward pass
  uint32_t passesEnd = 0; ///< the place of the first command that ends the step
  std::vector<std::string> streams;
  std::vector<report::PlanTimeline::Command> commands;
  std::vector<double> reached; ///< seconds at which the compute stream comes to each place; one for the end
  std::vector<double> busySeconds;
  double seconds = 0;

  std::string layerName(int64_t layer) const { return "layers." + std::to_string(firstLayer + layer); }
};

/// Simulates `stage`; `step` is estimateStep of what is planned.
StageSimulation simulateStage(const AnalyticCase &what, const cost::StepEstimate &step, int64_t stage);

} // namespace ds::planner

#endif // DS_LIB_PLANNER_ANALYTICSIMULATION_H
