//===- Evaluation.h - The loss of held-out data ---------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_EVALUATION_H
#define DS_LIB_RUNTIME_TRAINING_EVALUATION_H

#include "ds/Runtime/Executor.h"
#include "ds/Runtime/Formats/DataSource.h"

#include <functional>
#include <optional>

namespace ds::rt {

/// Mean of the held-out loss over all whole batches of `data`. Collective. `stop` is asked before each batch,
/// on every rank: once it says so there is no result, for whoever is asked to end has no time to finish this.
Result<std::optional<double>> evaluate(Executor &executor, DataSource &data,
                                       const std::function<Result<bool>()> &stop);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_EVALUATION_H
