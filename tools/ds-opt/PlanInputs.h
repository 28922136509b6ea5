//===- PlanInputs.h - What a plan was asked for with ------------------------------===//
#ifndef DS_TOOLS_DSOPT_PLANINPUTS_H
#define DS_TOOLS_DSOPT_PLANINPUTS_H

#include "Model.h"
#include "ds/Report/PlanReport.h"

namespace ds::opt {

/// Of a plan by rules.
std::vector<report::PlanInput> inputsOfRules(const Options &options, const config::Config &config);

/// Of the program of `model`: its own `ds.training` where that came with it, whatever the configuration says.
/// Results of kernels and workspaces of the CPU depend on `threads`.
std::vector<report::PlanInput> inputsOfProgram(const Model &model, const Options &options,
                                               const config::Config &config, uint32_t threads);

/// What a config.json alone describes, and what is assumed of its training: two lines before the plan.
std::string describeBare(const Options &options, const config::Config &config,
                         const report::PlanReport &report);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_PLANINPUTS_H
