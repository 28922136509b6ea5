//===- Surroundings.h - What LLVM is told of its surroundings ----------------------===//
#ifndef DS_TOOLS_DSOPT_SURROUNDINGS_H
#define DS_TOOLS_DSOPT_SURROUNDINGS_H

namespace ds::opt {

/// Makes memory, threads and output that LLVM does not get errors with the documented exit codes, and signals
/// remove temporary files. Once, before anything else.
void prepareSurroundings();

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_SURROUNDINGS_H
