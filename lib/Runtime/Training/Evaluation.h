//===- Evaluation.h - The loss of held-out data ---------------------------------===//
//
// An evaluation's batch is one micro-batch on every rank. The held-out loss is the mean of the losses of the
// micro-batches that have a target, or with loss_normalization "tokens" the mean over all targets.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_EVALUATION_H
#define DS_LIB_RUNTIME_TRAINING_EVALUATION_H

#include "Targets.h"

#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Engine/Executor.h"

#include <functional>
#include <optional>

namespace ds::rt {

/// The held-out loss over all whole batches of `data`, whatever stage gives it. Collective. `stop` is asked
/// before each batch, on every rank: once it says so there is no result, for whoever is asked to end has no
/// time to finish this. Diverged: no target of the data counts.
Result<std::optional<double>> evaluate(Executor &executor, Team &team, DataSource &data, Targets &targets,
                                       const std::function<Result<bool>()> &stop);

/// Diverged where the loss counts no target of `data` on any of `ranks` ranks. Not collective.
Status checkHeldOut(DataSource &data, uint32_t ranks);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_EVALUATION_H
