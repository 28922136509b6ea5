//===- PlanSettings.h - What a plan is asked for with --------------------------------===//
#ifndef DS_PLANNER_PLANSETTINGS_H
#define DS_PLANNER_PLANSETTINGS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds::planner {

enum class InputKind { Mlir, TorchScript, HfConfig };

/// The part of a command line that plans are compared by, and what is asked of the comparison.
struct PlanSettings {
  std::string input;               ///< the model's file; "-" is stdin
  std::vector<std::string> sets;   ///< KEY=VALUE, over those of the configuration
  std::vector<std::string> inputs; ///< NAME=SHAPExTYPE
  int64_t ranks = 1;
  bool whatIf = false, maxBatch = false, maxSeq = false;

  /// By the ending of the file's name.
  InputKind inputKind() const;
};

} // namespace ds::planner

#endif // DS_PLANNER_PLANSETTINGS_H
