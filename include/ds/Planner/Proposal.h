//===- Proposal.h - Another setting of the same command line ----------------------===//
//
// Only a plan says what a setting takes: a proposal is planned anew, with the same passes. That costs as much
// as the first plan did.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_PROPOSAL_H
#define DS_PLANNER_PROPOSAL_H

#include "ds/Config/Config.h"
#include "ds/Planner/PlanSettings.h"
#include "ds/Report/PlanReport.h"

#include <functional>

namespace ds::planner {

/// The report of the plan for other settings of the same command line.
using PlanFunction = std::function<Result<report::PlanReport>(const PlanSettings &)>;

/// Settings, and what they ask for in the words of a report.
struct Proposal {
  PlanSettings settings;
  report::PlanChoice choice;
  config::Home optimizerHome, parameterHome;

  Proposal(const PlanSettings &settings, const config::Config &config);

  /// `KEY=VALUE` behind all other settings; it is part of `choice.change` unless it follows from another.
  void set(const std::string &key, int64_t value, bool named = true);
  void setStage(int64_t stage);
  /// Where the optimizer's states, or the parameters of stage 3, live.
  void setOptimizerHome(config::Home home);
  void setParameterHome(config::Home home);
  /// What is recomputed whatever memory there is: "none", "attention" or "all".
  void setRecompute(const std::string &recompute);
  /// A micro-batch that divides the present one's samples of a step, which stay as many.
  void setMicroBatch(int64_t micro);
  /// A micro-batch of `micro` samples, and steps of as many more or fewer.
  void growMicroBatch(int64_t micro);
  /// Dimension `index` of every `--input` that has it, where it is `from`.
  void resizeInputs(unsigned index, int64_t from, int64_t to);

  /// Takes the figures of its plan into `choice`.
  void take(const report::PlanReport &report);
  /// Plans it; its figures are then in `choice`. Fails as the compilation does.
  Status plan(const PlanFunction &planner);

private:
  /// A micro-batch of `micro` samples, and as many of them a step as `choice` says.
  void resizeMicroBatch(int64_t micro);
  void setHome(const std::string &block, config::Home home);
};

/// The sizes of an `--input`: "x=4x128xi64" has {4, 128}. Empty where it is misspelt.
std::vector<int64_t> sizesOfInput(const std::string &input);

} // namespace ds::planner

#endif // DS_PLANNER_PROPOSAL_H
