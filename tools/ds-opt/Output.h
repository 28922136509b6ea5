//===- Output.h - What ds-opt writes ---------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_OUTPUT_H
#define DS_TOOLS_DSOPT_OUTPUT_H

#include "Model.h"

namespace ds::opt {

/// Writes `text` to `path`, or to stdout for "-".
Status writeText(const std::string &path, const std::string &text);

/// Writes the module as MLIR text.
Status writeIr(const Model &model, const Options &options);

/// Prints the plan, or checks it and writes the program with its weights. The model is in phase planned.
/// Fails with DoesNotFit where the plan exceeds its memory; `--plan-json` is written all the same.
Status writePlanAndProgram(Model &model, const Options &options, const config::Config &config,
                           uint32_t threads);

/// Prints what differs between two plans.
Status diffPlanFiles(const std::string &before, const std::string &after);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_OUTPUT_H
