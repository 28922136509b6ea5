//===- EvalData.h - The held-out data of a command line of ds-run ------------------===//
#ifndef DS_TOOLS_DS_RUN_EVALDATA_H
#define DS_TOOLS_DS_RUN_EVALDATA_H

#include "ds/Runtime/Job/TrainOptions.h"

#include <CLI/CLI.hpp>

/// Declares --eval-data, which can be given several times: DATA, or NAME=DATA.
void declareEvalData(CLI::App &app, ds::rt::TrainOptions &options);

/// What the held-out data of a parsed line ask of each other. Usage: several without names, or one name
/// twice.
ds::Status checkEvalData(const ds::rt::TrainOptions &options);

#endif // DS_TOOLS_DS_RUN_EVALDATA_H
