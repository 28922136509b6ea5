//===- PlannedMachine.h - A machine whose plans are formulas, for tests of questions --===//
#ifndef DS_UNITTESTS_PLANNER_PLANNEDMACHINE_H
#define DS_UNITTESTS_PLANNER_PLANNEDMACHINE_H

#include "ds/Planner/Proposal.h"

#include <map>

namespace ds::planner {

/// Plans by formulas what proposals ask for, and counts how often.
struct PlannedMachine {
  PlanSettings settings;
  config::Config config;
  int64_t limit = 1000;                       ///< bytes of the device
  int64_t statesBytes = 100, sampleBytes = 7; ///< states are divided by the stage, samples are not
  int64_t mostSamples = int64_t{1} << 30;     ///< that the model takes in a micro-batch
  mutable int plans = 0;

  PlannedMachine() {
    settings.input = "model.pt";
    settings.inputs = {"x=4x96xi64", "y=4x96xi64"};
    settings.ranks = 2;
    config.mesh.ranks = config.mesh.dp = 2;
    config.batch = {32, 4, 4};
  }

  /// The last value of `key`, or `fallback`.
  static int64_t valueOf(const PlanSettings &asked, const std::string &key, int64_t fallback) {
    for (const std::string &set : asked.sets)
      if (set.rfind(key + "=", 0) == 0 && set[key.size() + 1] != '"')
        fallback = std::stoll(set.substr(key.size() + 1));
    return fallback;
  }

  /// Whether the optimizer is said to live elsewhere in the end.
  static bool isOffloaded(const PlanSettings &asked) {
    bool isElsewhere = false;
    for (const std::string &set : asked.sets)
      if (set.rfind("zero_optimization.offload_optimizer.device=", 0) == 0)
        isElsewhere = set.find("none") == std::string::npos;
    return isElsewhere;
  }

  report::PlanReport report(const PlanSettings &asked) const {
    int64_t stage = valueOf(asked, "zero_optimization.stage", config.zero.stage);
    int64_t micro = valueOf(asked, "train_micro_batch_size_per_gpu", config.batch.micro);
    int64_t steps = valueOf(asked, "gradient_accumulation_steps", config.batch.accumulation);
    int64_t length = sizesOfInput(asked.inputs.at(0)).at(1);
    report::PlanReport report;
    report.memoryLimit = limit;
    report.predicted.stepSeconds = double(steps) * (1 + double(stage)) + 0.01 * double(micro);
    report::RankPlan rank;
    const int64_t states = statesBytes / (1 + stage) * 2 / asked.ranks / (isOffloaded(asked) ? 2 : 1);
    rank.deviceArena = states + micro * sampleBytes * length / 96;
    report.ranks.push_back(rank);
    return report;
  }

  PlanFunction planner() const {
    return [this](const PlanSettings &asked) -> Result<report::PlanReport> {
      ++plans;
      int64_t micro = valueOf(asked, "train_micro_batch_size_per_gpu", config.batch.micro);
      if (micro > mostSamples)
        return Error{ExitCode::Invalid, "the model takes at most " + std::to_string(mostSamples), ""};
      return report(asked);
    };
  }
};

} // namespace ds::planner

#endif // DS_UNITTESTS_PLANNER_PLANNEDMACHINE_H
