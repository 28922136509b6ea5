//===- Trainer.cpp - The steps of a training run, and its end -----------------------===//

#include "ds/Runtime/Training/Trainer.h"

#include "CheckRun.h"
#include "Engine/OpenStorage.h"
#include "Evaluation.h"
#include "Interrupt.h"
#include "Process/Clock.h"
#include "Process/Messages.h"
#include "Report.h"
#include "Run.h"
#include "StepOutcome.h"

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ds::rt {

/// Storage that takes longer for one read or write is told of.
static constexpr std::chrono::seconds kStoragePatience(60);

/// Makes what the last step has left, for somebody is to read states.
static Status finishUpdates(RunParts &parts, RunReport &report) {
  if (!parts.late.areLeft())
    return {};
  Status status = parts.late.finish(*parts.executor);
  report.skip();
  return status;
}

Status Run::make() {
  if (Status status = report.open(); !status)
    return status;
  if (parts.options.evalOnly)
    return evaluateAlone();
  if (Status status = steps(); !status) {
    if (Status traced = report.writeTrace(); !traced) // what led to the failure
      logLine(traced.error().message);
    return status;
  }
  return finish();
}

Status Run::steps() {
  tokens = tokensPerStep(parts.executor->whole());
  report.begin(tokens);
  if (parts.options.checkReplicas > 0)
    startReplicaCheck();
  if (Status status = agreeToStop(); !status)
    return status;
  if (Status status = losses.begin(stepsDone); !status)
    return status;
  while (stepsDone < parts.numSteps && !stopping)
    if (Status status = step(stepsDone); !status) {
      if (status.error().code == ExitCode::Diverged)
        losses.diagnose(status.error());
      return status;
    }
  return {};
}

void Run::startReplicaCheck() {
  replicas.emplace(*parts.executor, parts.team.own(),
                   [&team = parts.team](uint32_t rank) { return team.name(rank); });
  if (parts.team.leads() && !replicas->compares())
    logLine("--check-replicas compares nothing: each rank holds what no other does");
}

/// An interruption of any rank stops all of them here. Nothing else is asked: what is due at the end of the
/// step stays due, however often an evaluation asks this.
Status Run::agreeToStop() {
  const Result<bool> any = parts.team.anyOf(interrupted());
  if (!any)
    return any.error();
  stopping = *any;
  return {};
}

/// The same at the end of a step, where the ranks also learn what there is to do about checkpoints.
Result<Run::SaveNeeds> Run::agreeAfterStep() {
  const bool saves = parts.checkpointer != nullptr;
  const Result<Team::Flags> any = parts.team.anyOf(Team::Flags{
      interrupted(), saves && parts.checkpointer->isDue(stepsDone), saves && parts.checkpointer->isBusy()});
  if (!any)
    return any.error();
  stopping = (*any)[0];
  return SaveNeeds{(*any)[1], (*any)[2]};
}

RunPosition Run::position() const {
  const TrainOptions &options = parts.options;
  const uint64_t seed = parts.start.seed();
  const Checkpoint *from = options.newData ? nullptr : parts.start.checkpoint();
  const bool shuffled = options.shuffle || (from && from->manifest().data.shuffle);
  return {stepsDone,
          seed,
          {parts.data.training().sign(), samplesSeen(), tokensSeen(), shuffled, seed},
          evaluations};
}

bool Run::evaluatesAfter(uint64_t index) const {
  const TrainOptions &options = parts.options;
  const bool last = index + 1 == parts.numSteps;
  return !parts.data.heldOut().empty() && !stopping &&
         (last || (options.evalEvery > 0 && (index + 1) % options.evalEvery == 0));
}

/// Checkpoints that are due, but for the last one: that is finish()'s.
Status Run::saveIfDue(const SaveNeeds &needs) {
  if (!parts.checkpointer)
    return {};
  const bool last = stopping || stepsDone == parts.numSteps;
  if (needs.isDue && !last)
    if (Status status = finishUpdates(parts, report); !status)
      return status;
  return parts.checkpointer->endStep(*parts.executor, position(), needs.isDue && !last, needs.isBusy);
}

/// What time it is after the step, and what all ranks have consumed by then.
void Run::addPosition(StepRecord &record) const {
  record.time = secondsSince1970();
  record.samples = samplesSeen();
  if (tokens > 0)
    record.tokens = tokensSeen();
}

/// Makes a step that was begun at `begin`, with what the host has to say before.
Result<StepRecord> Run::compute(uint64_t index, int64_t begin) {
  if (Status set = losses.setLimit(); !set)
    return set.error();
  report.beforeStep(index);
  Status status = parts.late.runStep(*parts.executor, [&](uint32_t microBatch) {
    return parts.data.fill(*parts.executor, losses.batchOf(index), microBatch);
  });
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  const std::vector<Timing> timings = report.take(index, begin);
  if (!status)
    return status.error();
  report.profile(index, seconds, timings);
  Result<StepRecord> record = readStep(*parts.executor, parts.team, index + 1);
  if (!record)
    return record;
  record->stepSeconds = seconds;
  report.addTo(*record);
  return record;
}

/// Makes the step, unless no target of it counts: then nothing is computed, and the states stay as they are.
Result<StepRecord> Run::makeStep(uint64_t index) {
  const Program &program = parts.program();
  const int64_t begin = nowNs();
  const uint64_t ranks = program.mesh.size(program.dataAxes);
  const Result<std::optional<TargetCounts>> counts =
      parts.targets->count(parts.data.training(), losses.batchOf(index), program.accumulation);
  if (!counts)
    return counts.error();
  StepRecord record;
  record.step = index + 1;
  record.skipped = true;
  record.lossScale = losses.scale();
  record.peakBytes = parts.executor->stage().arenas;
  record.stepSeconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (!*counts || (*counts)->total > 0) {
    if (Status set = parts.targets->setMean(*parts.executor, parts.data.training(), *counts,
                                            program.accumulation * ranks);
        !set)
      return set.error();
    Result<StepRecord> made = compute(index, begin);
    if (!made)
      return made;
    record = std::move(*made);
  }
  if (*counts) {
    record.targets = (*counts)->total;
    if (const std::string text = parts.targets->notice(**counts, index + 1);
        parts.team.leads() && !text.empty())
      logLine(text);
  }
  record.samplesPerSecond =
      double(program.microBatch) * program.accumulation * double(ranks) / *record.stepSeconds;
  return record;
}

Status Run::step(uint64_t index) {
  Result<StepRecord> record = makeStep(index);
  if (!record)
    return Error{record.error().code, fmt::format("step {}: {}", index + 1, record.error().message),
                 record.error().hint};
  const Result<uint64_t> done = losses.act(*record, index);
  if (!done)
    return done.error();
  stepsDone = *done;
  evaluations.clear();
  return stepsDone <= index ? Status() : endStep(*record, index); // unless it went back
}

/// What follows a step that the run keeps.
Status Run::endStep(StepRecord &record, uint64_t index) {
  Result<SaveNeeds> needs = agreeAfterStep();
  if (!needs)
    return needs.error();
  if (evaluatesAfter(index))
    if (Status evaluated = evaluateAfterStep(record, *needs); !evaluated)
      return evaluated;
  addPosition(record);
  report.write(record, samplesSeen(), /*last=*/record.step == parts.numSteps || stopping);
  if (replicas && stepsDone % parts.options.checkReplicas == 0) {
    if (Status status = finishUpdates(parts, report); !status)
      return status;
    if (Status compared = replicas->run(stepsDone); !compared)
      return compared;
  }
  if (Status status = checkLossScale(record); !status)
    return status;
  return saveIfDue(*needs);
}

/// The held-out losses of the step, which may be worth a checkpoint.
Status Run::evaluateAfterStep(StepRecord &record, SaveNeeds &needs) {
  if (Status status = finishUpdates(parts, report); !status)
    return status;
  Result<std::vector<EvalLoss>> losses = heldOut.evaluate();
  if (!losses)
    return losses.error();
  report.skip();
  record.evaluations = evaluations = std::move(*losses);
  if (!parts.checkpointer || parts.options.keep.best == 0)
    return {};
  const Result<bool> isBest = parts.team.anyOf(parts.checkpointer->isAmongBest(evaluations));
  if (!isBest)
    return isBest.error();
  needs.isDue |= *isBest;
  return {};
}

/// The losses of all data, one after another on the terminal, and as one line of the log.
Status Run::evaluateAlone() {
  StepRecord record;
  record.step = parts.start.step();
  record.time = secondsSince1970();
  for (HeldOut &held : parts.data.heldOut()) {
    if (parts.team.leads())
      report.printHeadOf(held.source);
    const int64_t begin = nowNs();
    const Result<std::optional<double>> loss = heldOut.evaluate(held.source);
    if (!loss)
      return loss.error();
    if (!*loss)
      return Error{ExitCode::Interrupted, "interrupted before the end of the data; no loss is known", ""};
    record.evaluations.push_back({held.name, **loss});
    if (parts.team.leads())
      printLine(fmt::format("eval_loss {:.9g}{}  after step {}  {} batches in {:.3g} s", **loss,
                            held.name.empty() ? "" : " of " + held.name, parts.start.step(),
                            held.source.numBatches(), static_cast<double>(nowNs() - begin) * 1e-9));
  }
  report.writeLog(record);
  const auto lost = std::ranges::find_if(record.evaluations,
                                         [](const EvalLoss &each) { return !std::isfinite(each.loss); });
  if (lost == record.evaluations.end())
    return {};
  const auto number = static_cast<size_t>(lost - record.evaluations.begin());
  return Error{
      ExitCode::Diverged,
      fmt::format("'{}': the held-out loss is {}", parts.data.heldOut()[number].source.path(), lost->loss),
      "look for samples that are not finite, and at the weights: " + parts.start.weights()};
}

Status Run::finish() {
  if (Status status = report.writeTrace(); !status)
    return status;
  if (parts.checkpointer || !parts.options.saveWeights.empty())
    if (Status status = finishUpdates(parts, report); !status)
      return status;
  if (parts.checkpointer)
    if (Status status = parts.checkpointer->finish(*parts.executor, position()); !status)
      return status;
  if (!parts.options.saveWeights.empty()) {
    if (Status status = saveWeights(*parts.executor, parts.options.saveWeights, parts.team.own()); !status)
      return status;
    if (parts.team.leads())
      logLine(fmt::format("weights saved to '{}'", parts.options.saveWeights));
  }
  if (const std::string summary = replicas ? replicas->summary() : ""; parts.team.leads() && !summary.empty())
    logLine(summary);
  if (const Storage *storage = parts.executor->storageArena(); storage && parts.team.leads())
    logLine(describeTotals(*storage));
  if (std::string summary = report.summary(); parts.team.leads() && !summary.empty())
    logLine(summary.substr(0, summary.find_last_not_of('\n') + 1));
  return stopping ? Status(interruption()) : Status();
}

/// What is told at the end of a run that was asked to end.
Error Run::interruption() const {
  const std::string name = interruptName(); // empty: another rank was asked
  const std::string by = name.empty() ? "" : " by " + name;
  const std::string when = stepsDone == 0 ? "before the first step" : fmt::format("after step {}", stepsDone);
  if (parts.checkpointer)
    return Error{
        ExitCode::Interrupted,
        fmt::format("interrupted {}{}; the checkpoint is '{}'", when, by, parts.checkpointer->newest()), ""};
  if (parts.options.saveWeights.empty())
    return Error{ExitCode::Interrupted, fmt::format("interrupted {}{}; nothing was kept", when, by),
                 "give --save DIR to resume later"};
  return Error{ExitCode::Interrupted,
               fmt::format("interrupted {}{}; the weights are in '{}'", when, by, parts.options.saveWeights),
               ""};
}

/// Prepares and makes the run.
static Status makeRun(RunParts &parts) {
  if (Status status = prepareRun(parts); !status)
    return status;
  return Run(parts).make();
}

Status train(const TrainOptions &options) {
  watchInterrupts(/*parentPassesOn=*/options.place.kind == RankIdentity::Kind::Pmix);
  if (Status status = checkOptions(options); !status)
    return status;
  Result<std::unique_ptr<Team>> team = Team::join(options);
  if (!team)
    return team.error();
  const StorageWatch storage(kStoragePatience, [rank = (*team)->rank()](const std::string &operation) {
    logLine(fmt::format("rank {} has been {}", rank, operation));
  });
  RunParts parts(options, **team);
  return (*team)->leave(options.dryRun ? explainRun(parts) : makeRun(parts));
}

} // namespace ds::rt
