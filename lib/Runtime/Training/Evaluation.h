//===- Evaluation.h - The loss of held-out data ---------------------------------===//
//
// An evaluation's batch is one micro-batch on every rank. The held-out loss is the mean of the losses of the
// micro-batches that have a target, or with loss_normalization "tokens" the mean over all targets.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_EVALUATION_H
#define DS_LIB_RUNTIME_TRAINING_EVALUATION_H

#include "RunParts.h"

#include <functional>
#include <optional>
#include <vector>

namespace ds::rt {

/// The evaluations of a run.
class Evaluation {
public:
  /// `stop` is asked before each batch, on every rank: once it says so there is no result, for whoever is
  /// asked to end has no time to finish this. `parts` outlive the evaluation.
  Evaluation(RunParts &parts, std::function<Result<bool>()> stop) : parts(parts), stop(std::move(stop)) {}

  /// The held-out loss over all whole batches of `data`, whatever stage gives it. Collective. Diverged: no
  /// target of the data counts.
  Result<std::optional<double>> evaluate(DataSource &data);
  /// Those of all held-out data, or none: a part of them is no evaluation. Collective.
  Result<std::vector<EvalLoss>> evaluate();

private:
  RunParts &parts;
  std::function<Result<bool>()> stop;
};

/// Diverged where the loss counts no target of `data` on any of `ranks` ranks. Not collective.
Status checkHeldOut(DataSource &data, uint32_t ranks);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_EVALUATION_H
