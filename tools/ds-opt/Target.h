//===- Target.h - What a program is compiled for ----------------------------------===//
#ifndef DS_TOOLS_DSOPT_TARGET_H
#define DS_TOOLS_DSOPT_TARGET_H

#include "Options.h"
#include "ds/Config/Cluster.h"

namespace ds::opt {

struct Target {
  std::string name = "cpu"; ///< "cpu", "cuda:sm_90"
  std::string reason;       ///< why, for the plan's reader; empty where there was no choice
  bool isNearest = false;   ///< in place of the device's own, for which no code is generated
};

/// What `options` ask for, else what the device of the cluster that they name runs. Where no code is
/// generated for that device, a plan is for the nearest older one that has it, else for the oldest. Fails
/// (exit code 3) where `--target` contradicts the cluster, and where a program is asked for that the device
/// would not run.
Result<Target> chooseTarget(const Options &options, const config::Cluster &cluster);

/// The built-in cluster whose device a `--target` stands for where no `--cluster` is given.
config::Cluster deviceOfTarget(const Options &options);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_TARGET_H
