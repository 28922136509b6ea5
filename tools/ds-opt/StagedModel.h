//===- StagedModel.h - Models that come cut into stages -----------------------------===//
#ifndef DS_TOOLS_DSOPT_STAGEDMODEL_H
#define DS_TOOLS_DSOPT_STAGEDMODEL_H

#include "CommandLine/Options.h"
#include "ds/Dialect/Ds.h"
#include "ds/Support/Error.h"

namespace ds::opt {

/// Refuses, of a module that has stages, what no command line can change of it: a configuration, and
/// questions about other ones. Its stages are trained alike, on one machine.
Status checkStages(mlir::ModuleOp module, const Options &options);

/// Lets all stages of `module` say what the first says of training and machine.
void shareFacts(mlir::ModuleOp module);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_STAGEDMODEL_H
