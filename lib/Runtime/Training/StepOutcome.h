//===- StepOutcome.h - What a step has computed, and whether to go on -----------===//
#ifndef DS_LIB_RUNTIME_TRAINING_STEPOUTCOME_H
#define DS_LIB_RUNTIME_TRAINING_STEPOUTCOME_H

#include "Job/Team.h"

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Formats/JsonLog.h"

namespace ds::rt {

/// The values of outputs that have these names, none where no stage gives one. The same on every rank: what
/// this rank's stage does not give comes from the first rank of one that does. Collective where there are
/// several stages. Diverged: stages do not give the same.
Result<std::vector<std::optional<double>>> readOutputs(const Executor &executor, Team &team,
                                                       std::span<const char *const> names);

/// The values of a finished step, read as above.
Result<StepRecord> readStep(const Executor &executor, Team &team, uint64_t step);

/// The scalar that says beyond which loss a step is skipped; null where the program has none.
const State *findLossLimit(const Program &program);

/// Sets it, if there is one.
Status setLossLimit(Executor &executor, float limit);

/// How many steps the program's schedule is laid out for, if it is laid out by the number of steps.
Result<std::optional<double>> totalSteps(const Executor &executor);

/// The scalar by which losses are divided that are means over a step's targets; null where the program has
/// none: its losses are means over micro-batches.
const State *findMeanTargets(const Program &program);

/// Sets it, if there is one.
Status setMeanTargets(Executor &executor, float targets);

/// Tells the program how many steps the run has, if its schedule asks for that (the scalar "total_steps").
Status setTotalSteps(Executor &executor, uint64_t steps);

/// Refuses to go on, as DeepSpeed does, after an overflow at the smallest loss scale with no hysteresis left.
Status checkLossScale(const StepRecord &record);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_STEPOUTCOME_H
