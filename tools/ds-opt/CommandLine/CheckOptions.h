//===- CheckOptions.h - What a command line is refused for -------------------------===//
//
// Before any work is done for it. Questions and their basis have checks of their own (Basis.h), and so has
// what lies in the input file (ModelFile.h, InputGuard.h).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_CHECKOPTIONS_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_CHECKOPTIONS_H

#include "Options.h"
#include "ds/Config/Config.h"
#include "ds/Support/Error.h"

#include "mlir/IR/DialectRegistry.h"

namespace ds::opt {

/// Refuses what the command line asks for and no part of the compiler can do yet.
Status checkOptions(const Options &options);

/// Refuses passes that are named where the compiler runs its own: they would be ignored.
Status checkPasses(mlir::DialectRegistry &registry);

/// Refuses keys that no program has yet, with the way to a plan by rules if there is one.
Status checkKeys(const Options &options, const config::Config &config);

/// Refuses outputs that could not be written, or that are inputs, and weights beside the program that would
/// replace a file which ds-opt has not written.
Status checkFiles(const Options &options);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_CHECKOPTIONS_H
