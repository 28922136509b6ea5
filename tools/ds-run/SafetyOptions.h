//===- SafetyOptions.h - What a run does when its numbers go wrong -----------------===//
#ifndef DS_TOOLS_DSRUN_SAFETYOPTIONS_H
#define DS_TOOLS_DSRUN_SAFETYOPTIONS_H

#include "ds/Runtime/Job/TrainOptions.h"

#include <CLI/CLI.hpp>

/// --on-nan, --on-spike and what spikes are, and --check-replicas.
void declareSafety(CLI::App &app, ds::rt::TrainOptions &options);

#endif // DS_TOOLS_DSRUN_SAFETYOPTIONS_H
