//===- RunPhases.h - A module from phase to phase --------------------------------===//
#ifndef DS_TOOLS_DSOPT_RUNPHASES_H
#define DS_TOOLS_DSOPT_RUNPHASES_H

#include "ds/Passes/Pipeline.h"
#include "ds/Support/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace ds::opt {

/// Runs what `build` adds on `target`, as the command line asks passes to be watched.
mlir::LogicalResult runPipeline(llvm::function_ref<void(mlir::OpPassManager &)> build, mlir::ModuleOp target);

/// Brings each stage of `module`, or itself where it is of one piece, to the phase that is asked for. Fails
/// with DoesNotFit where `options` give up a plan.
Status runPhases(mlir::ModuleOp module, const std::string &name, const mlir::ds::PipelineOptions &options);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_RUNPHASES_H
