//===- Trainer.h - A training run from program file to weights file ------------===//
//
// What ds-run does, as a library: everything that can be refused is refused before step 1 (program,
// processor, memory, data, weights, unwritable outputs), then each step fills the inputs, runs the schedule,
// and tells what the program computed. No decision about the training is made here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_TRAINING_TRAINER_H
#define DS_RUNTIME_TRAINING_TRAINER_H

#include "ds/Runtime/Job/TrainOptions.h"
#include "ds/Support/Error.h"

namespace ds::rt {

/// What one process can refuse for all `options.ranks` before any of them is started: options, and a program
/// that cannot be read or is for another number of ranks.
Status checkBeforeLaunch(const TrainOptions &options);

/// Runs to the end, to an interruption or to the first error; prints results on stdout and the log on stderr.
/// Returns Error{Interrupted} after an interruption that was handled cleanly.
Status train(const TrainOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_TRAINING_TRAINER_H
