//===- Evaluation.cpp - The loss of held-out data -------------------------------===//
#include "Evaluation.h"

#include "StepOutcome.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

static constexpr const char *kLoss = "eval_loss";

/// Whether some stage gives a held-out loss.
static bool hasLoss(const Program &whole) {
  return std::ranges::any_of(whole.outputs, [](const Output &output) { return output.name == kLoss; });
}

static Error withoutTargets(const DataSource &data) {
  return Error{ExitCode::Diverged,
               fmt::format("'{}': no target of its {} batches counts, so that there is no held-out loss",
                           data.path(), data.numBatches()),
               "look at its loss_mask or labels, and at --document-token: what leaves a target out"};
}

Status checkHeldOut(DataSource &data, uint32_t ranks) {
  const Result<bool> any = hasTargets(data, ranks);
  if (!any)
    return any.error();
  return *any ? Status() : Status(withoutTargets(data));
}

namespace {
/// The mean of what batches have, each with its weight.
struct WeightedMean {
  double sum = 0, weight = 0;
  void add(double value, double times) {
    sum += value * times;
    weight += times;
  }
};
} // namespace

/// Adds the loss of one batch, in which `counts` count: a mean over ranks, of which some may have no target.
static Status addBatch(Executor &executor, Team &team, const DataSource &data, const Targets &targets,
                       const std::optional<TargetCounts> &counts, WeightedMean &mean) {
  const uint32_t ranks = executor.program().mesh.size(executor.program().dataAxes);
  if (Status status = targets.setMean(executor, data, counts, ranks); !status)
    return status;
  if (Status status = executor.run(static_cast<uint32_t>(executor.stage().evaluation)); !status)
    return status;
  const auto values = readOutputs(executor, team, {&kLoss, 1});
  if (!values)
    return values.error();
  const double loss = (*values)[0].value_or(0);
  if (!counts)
    mean.add(loss, 1);
  else if (targets.normalizes())
    mean.add(loss, static_cast<double>(counts->total));
  else { // those without a target have added 0
    mean.sum += loss * ranks;
    mean.weight += static_cast<double>(counts->parts);
  }
  return {};
}

Result<std::optional<double>> Evaluation::evaluate(DataSource &data) {
  Executor &executor = *parts.executor;
  if (!hasLoss(executor.whole()))
    return Error{ExitCode::Corrupt, parts.options.program + ": no output 'eval_loss'",
                 "compile the model again with ds-opt"};
  WeightedMean mean;
  for (uint64_t batch = 0; batch < data.numBatches(); ++batch) {
    const Result<bool> stopped = stop();
    if (!stopped)
      return stopped.error();
    if (*stopped)
      return std::optional<double>();
    const Result<std::optional<TargetCounts>> counts = parts.targets->count(data, batch, /*accumulation=*/1);
    if (!counts)
      return counts.error();
    if (*counts && (*counts)->total == 0)
      continue;
    if (Status status = data.fill(batch, 0, dataPositionOf(executor), destinationsOf(executor, 0)); !status)
      return status.error();
    if (Status status = addBatch(executor, parts.team, data, *parts.targets, *counts, mean); !status)
      return status.error();
  }
  return mean.weight > 0 ? Result<std::optional<double>>(mean.sum / mean.weight) : withoutTargets(data);
}

Result<std::vector<EvalLoss>> Evaluation::evaluate() {
  std::vector<EvalLoss> losses;
  for (HeldOut &held : parts.data.heldOut()) {
    const Result<std::optional<double>> loss = evaluate(held.source);
    if (!loss)
      return loss.error();
    if (!*loss)
      return std::vector<EvalLoss>();
    losses.push_back({held.name, **loss});
  }
  return losses;
}

} // namespace ds::rt
