//===- LowerToProgram.h - From the planned module to the program of one rank -----===//
//
// The last step of the compiler: nothing is decided here, everything is copied out of the IR into the plain
// struct that the runtime executes.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_LOWERTOPROGRAM_H
#define DS_PASSES_LOWERTOPROGRAM_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"
#include "ds/Report/PlanTimeline.h"
#include "ds/Runtime/Program.h"

namespace mlir::ds {

/// What the program says beyond the IR.
struct ProgramOptions {
  uint32_t threads = 1;
  uint32_t microBatch = 1, accumulation = 1;
  ::ds::cost::Rates rates; ///< for the predicted figures
};

/// The program of `module` (phase planned), without kernels: `Program::kernels` has one entry per ds.kernel,
/// in order, with its name only. Fails with a diagnostic where the module is not planned.
FailureOr<::ds::rt::Program> lowerToProgram(ModuleOp module, const ProgramOptions &options);

/// What the plan of `module` (phase planned) says of itself, and how long a step takes at the rates of a
/// cluster: all ranks of its mesh have the same.
::ds::analysis::PlanReport summarizePlan(ModuleOp module, const ::ds::cost::Rates &rates);

/// The step that `module` (phase planned) is, command by command and buffer by buffer, over its predicted
/// time.
::ds::analysis::PlanTimeline timelineOfPlan(ModuleOp module, const ::ds::cost::Rates &rates);

/// Adds to `report` the mesh of `module`, what a rank sends in one step, and what stays gathered.
void addCommunication(ModuleOp module, ::ds::analysis::PlanReport &report);

/// Where the model made an op: its layer ("h.3.attn"), or empty.
std::string layerOf(Location loc);

/// What a command is called in reports and traces: "matmul", "attention_forward", or the main op of a kernel.
std::string nameOfCommand(Operation *command, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_LOWERTOPROGRAM_H
