//===- Driver.h - What ds-opt does with its arguments ----------------------------===//
//
// ds-opt is two tools in one. With MLIR text and pass flags it is an mlir-opt that knows ds. With a model and
// `--emit` it reads a configuration, imports the model, runs the pipeline and prints a plan or writes a
// program.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_DRIVER_H
#define DS_TOOLS_DSOPT_DRIVER_H

#include "ds/Support/Error.h"

namespace ds::opt {

/// Runs the tool; prints errors to stderr.
ExitCode run(int argc, char **argv);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_DRIVER_H
