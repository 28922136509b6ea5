//===- CheckRun.h - What a run refuses before it starts ---------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_CHECKRUN_H
#define DS_LIB_RUNTIME_TRAINING_CHECKRUN_H

#include "ds/Runtime/Job/TrainOptions.h"
#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// What this ds-run cannot do is refused by name, never ignored.
Status checkOptions(const TrainOptions &options);

/// Refuses a program that `started` ranks with these options cannot train.
Status checkProgram(const Program &program, const TrainOptions &options, uint32_t started);

/// Where a run that no checkpoint continues gets its weights: the file that is given, else the one that was
/// written with the program; empty: initial values from the seed. Invalid where the program's own file is not
/// beside it: the run would train another model than was compiled, without a word.
Result<std::string> findWeights(const Program &program, const TrainOptions &options);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_CHECKRUN_H
