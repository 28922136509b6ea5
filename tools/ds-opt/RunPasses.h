//===- RunPasses.h - What ds-opt shares with mlir-opt ------------------------------===//
#ifndef DS_TOOLS_DSOPT_RUNPASSES_H
#define DS_TOOLS_DSOPT_RUNPASSES_H

#include "CommandLine/Options.h"
#include "ds/Support/Error.h"

#include "mlir/IR/DialectRegistry.h"

namespace ds::opt {

/// Registers what may stand in IR and in pass flags.
void registerEverything(mlir::DialectRegistry &registry);

/// What mlir-opt does: reads MLIR, runs the passes of the command line, and prints what they leave.
ExitCode runPasses(int argc, char **argv, const Options &options, mlir::DialectRegistry &registry);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_RUNPASSES_H
