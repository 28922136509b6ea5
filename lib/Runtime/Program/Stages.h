//===- Stages.h - Which part of a program a rank runs --------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_STAGES_H
#define DS_LIB_RUNTIME_PROGRAM_STAGES_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// The axis of the mesh along which ranks hold different stages.
inline constexpr const char *kPipelineAxis = "pp";

/// How many stages the mesh is for: its size along the pipeline's axis, 1 without one.
uint32_t numStages(const Program &program);

/// The stage of `rank`: its position along the pipeline's axis.
uint32_t stageOf(const Program &program, uint32_t rank);

/// The program with nothing left in it that belongs to other stages: it has one stage, and all that says so
/// says 0. What is shared (buffers, kernels, collectives, events) keeps its numbers; segments, commands and
/// lifetimes are numbered anew where there were several stages. Requires a program that verifyProgram
/// accepts.
Program takeStage(Program program, uint32_t stage);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_STAGES_H
