//===- Target.h - What a program is compiled for ----------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_TARGET_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_TARGET_H

#include "Options.h"
#include "ds/Config/Cluster.h"

namespace ds::opt {

struct Target {
  std::string name = "cpu"; ///< "cpu", "cuda:sm_90"
  std::string reason;       ///< why, for the plan's reader; empty where there was no choice
  /// No code is generated that the device runs: it is planned as another, and has no program.
  bool isPlanningOnly = false;
};

/// What `options` ask for, else what the device of the cluster that they name runs: code of its own, else
/// that of the nearest older device. Where there is none a plan is for the oldest device that has code. Fails
/// (exit code 3) where `--target` contradicts the cluster, and where a program is asked for that the device
/// would not run.
Result<Target> chooseTarget(const Options &options, const config::Cluster &cluster);

/// Whether the cluster's devices run nothing that is generated, so that they are planned for and no more.
bool isPlanningOnly(const config::Cluster &cluster);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_TARGET_H
