//===- CheckRun.h - What a run refuses before it starts ---------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_CHECKRUN_H
#define DS_LIB_RUNTIME_TRAINING_CHECKRUN_H

#include "ds/Runtime/Program.h"
#include "ds/Runtime/Trainer.h"

namespace ds::rt {

/// What this ds-run cannot do is refused by name, never ignored.
Status checkOptions(const TrainOptions &options);

/// Refuses a program that `started` ranks with these options cannot train.
Status checkProgram(const Program &program, const TrainOptions &options, uint32_t started);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_CHECKRUN_H
