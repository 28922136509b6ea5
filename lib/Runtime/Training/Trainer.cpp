//===- Trainer.cpp - The steps of a training run, and its end -----------------------===//

#include "ds/Runtime/Training/Trainer.h"

#include "CheckRun.h"
#include "Engine/OpenStorage.h"
#include "Evaluation.h"
#include "Interrupt.h"
#include "Monitor/Profile.h"
#include "OpenDevice.h"
#include "Process/Clock.h"
#include "Process/Messages.h"
#include "Report.h"
#include "Run.h"
#include "StepOutcome.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

#include <cmath>

#include <unistd.h>

namespace ds::rt {

/// Storage that takes longer for one read or write is told of.
static constexpr std::chrono::seconds kStoragePatience(60);

/// Collectives that the table at the end names, unless all are asked for: what ranks tell then is ten lines.
static constexpr size_t kShortSummary = 6;

Run::Run(const TrainOptions &options, Team &team)
    : options(options), team(team), resume(options, team),
      guard(options.loss, team.leads() ? logLine : LossGuard::Tell()) {
  guard.restore = [this](uint64_t &step) { return goBack(step); };
}

void Run::startTrace() {
  nameTracks(trace.emplace(team.rank(), team.world()), executor->program(), team.rank());
  trace->setOrigin(nowNs()); // all ranks have just met
  executor->measure(true);
}

Status Run::steps() {
  const Program &program = executor->program();
  tokens = tokensPerStep(program);
  if (!options.trace.empty())
    startTrace();
  if (device)
    logLine(device->describe() + "; " + describeMemory(device->memory(), program));
  if (team.leads()) {
    printHead(program, data->describe(), weights, numSteps, seed);
    line.emplace(numSteps, tokens, program.predicted, mayColour(STDOUT_FILENO));
    printed.emplace(options.logEvery, program.watch.stepsPerPrint);
  }
  if (options.checkReplicas > 0)
    startReplicaCheck();
  if (Status status = agreeToStop(); !status)
    return status;
  lossScale = readOutputs(*executor, stepsDone).lossScale;
  while (stepsDone < numSteps && !stopping)
    if (Status status = step(stepsDone); !status) {
      if (status.error().code == ExitCode::Diverged)
        diagnose(status.error());
      return status;
    }
  return {};
}

/// Writes down what can be known of numbers that end the run. That it cannot be written is no other end.
void Run::diagnose(const Error &why) const {
  const std::string &directory = options.diagnostics.empty() ? options.save : options.diagnostics;
  if (directory.empty())
    return;
  const Result<std::string> path = diagnostics.write(directory, *executor, why);
  if (!path)
    logLine("no diagnostics: " + path.error().message);
  else if (team.leads())
    logLine(fmt::format("diagnostics are in '{}'{}", *path,
                        team.world() > 1 ? ", and beside it those of the other ranks" : ""));
}

void Run::startReplicaCheck() {
  replicas.emplace(*executor, team.own(), [this](uint32_t rank) { return team.name(rank); });
  if (team.leads() && replicas->bytes() == 0)
    logLine("--check-replicas compares nothing: each rank holds what no other does");
}

/// An interruption of any rank stops all of them here. Nothing else is asked: what is due at the end of the
/// step stays due, however often an evaluation asks this.
Status Run::agreeToStop() {
  const Result<bool> any = team.anyOf(interrupted());
  if (!any)
    return any.error();
  stopping = *any;
  return {};
}

/// The same at the end of a step, where the ranks also learn what there is to do about checkpoints.
Result<Run::SaveNeeds> Run::agreeAfterStep() {
  const bool saves = checkpointer != nullptr;
  const Result<Team::Flags> any = team.anyOf(
      Team::Flags{interrupted(), saves && checkpointer->isDue(stepsDone), saves && checkpointer->isBusy()});
  if (!any)
    return any.error();
  stopping = (*any)[0];
  return SaveNeeds{(*any)[1], (*any)[2]};
}

RunPosition Run::position() const {
  const Checkpoint *from = options.newData ? nullptr : resume.checkpoint();
  const bool shuffled = options.shuffle || (from && from->manifest().data.shuffle);
  return {stepsDone, seed, {data->sign(), samplesSeen(), tokensSeen(), shuffled, seed}};
}

/// Checkpoints that are due, but for the last one: that is finish()'s.
Status Run::saveIfDue(const SaveNeeds &needs) {
  if (!checkpointer)
    return {};
  const bool last = stopping || stepsDone == numSteps;
  return checkpointer->endStep(*executor, position(), needs.isDue && !last, needs.isBusy);
}

/// What the step's collectives cost. The time that is exposed is also what a rank waits for a slower one.
void Run::addCommunication(StepRecord &record) {
  if (team.world() == 1)
    return;
  const CommTotals now = team.totals();
  record.commBytes = now.bytes - communicated.bytes;
  record.commSeconds = now.seconds - communicated.seconds;
  record.commExposedSeconds = static_cast<double>(executor->takeExposedNs()) * 1e-9;
  communicated = now;
}

/// What time it is after the step, and what all ranks have consumed by then.
void Run::addPosition(StepRecord &record) const {
  record.time = secondsSince1970();
  record.samples = samplesSeen();
  if (tokens > 0)
    record.tokens = tokensSeen();
}

/// Steps that cannot be recorded are slower: that is said once.
void Run::addGraph(StepRecord &record) {
  if (!device)
    return;
  record.graph = executor->graph().recorded;
  record.graphReason = executor->graph().refusal;
  if (!record.graphReason.empty() && !std::exchange(toldOfGraph, true))
    logLine(fmt::format("step {}: no CUDA graph can be recorded, so that commands are started one by one "
                        "(DS_CUDA_GRAPH=require makes it an error): {}",
                        record.step, record.graphReason));
}

bool Run::isProfiled(uint64_t index) const {
  const std::optional<ProfileSettings> &settings = executor->program().watch.profile;
  return settings && team.leads() && index + 1 == settings->step;
}

/// The configuration's flops_profiler, of the step that was measured for it.
void Run::profile(uint64_t index, double seconds, const std::vector<Timing> &timings) const {
  const Program &program = executor->program();
  const ProfileSettings &settings = *program.watch.profile;
  const std::string text = spellProfile(program, profileOf(program, timings), index + 1, seconds, settings);
  if (settings.output.empty()) {
    printLine(text.substr(0, text.size() - 1));
    return;
  }
  Result<AtomicFile> file = AtomicFile::create(settings.output);
  Status written = file ? file->write(text) : Status(file.error());
  if (written)
    written = file->commit();
  if (!written) // no reason to end a training
    logLine("flops_profiler.output_file: " + written.error().message);
}

/// Writes down a step that is done, on rank 0.
void Run::tell(const StepRecord &record) {
  if (line) {
    const std::string text = line->spell(record);
    const bool forced = record.step == numSteps || stopping || record.evalLoss;
    if (printed->isNext(record.step, static_cast<double>(nowNs()) * 1e-9, forced))
      printLine(text);
  }
  if (log)
    log->write(record);
  if (monitors)
    monitors->write(record, samplesSeen());
}

/// Makes a step that was begun at `begin`, with what the host has to say before.
Result<StepRecord> Run::makeOnly(uint64_t index, int64_t begin) {
  const Program &program = executor->program();
  if (const float limit = guard.limit(); std::exchange(lossLimit, limit) != limit)
    if (Status set = setLossLimit(*executor, limit); !set)
      return set.error();
  if (isProfiled(index))
    executor->measure(true);
  Status status =
      executor->runStep([&](uint32_t microBatch) { return fill(*data, guard.batchOf(index), microBatch); });
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  const std::vector<Timing> timings = executor->takeTimings();
  if (trace)
    addToTrace(*trace, program, team.rank(), index + 1, begin, timings);
  if (!status)
    return status.error();
  if (isProfiled(index)) {
    executor->measure(trace.has_value());
    profile(index, seconds, timings);
  }
  StepRecord record = readOutputs(*executor, index + 1);
  record.stepSeconds = seconds;
  addCommunication(record);
  addGraph(record);
  return record;
}

/// Makes the step, unless no target of it counts: then nothing is computed, and the states stay as they are.
Result<StepRecord> Run::make(uint64_t index) {
  const Program &program = executor->program();
  const int64_t begin = nowNs();
  const uint64_t ranks = program.mesh.size(program.dataAxes);
  const Result<std::optional<TargetCounts>> counts =
      targets->count(*data, guard.batchOf(index), program.accumulation);
  if (!counts)
    return counts.error();
  StepRecord record;
  record.step = index + 1;
  record.skipped = true;
  record.lossScale = lossScale;
  record.peakBytes = executor->stage().arenas;
  record.stepSeconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (!*counts || (*counts)->total > 0) {
    if (Status set = targets->setMean(*executor, *data, *counts, program.accumulation * ranks); !set)
      return set.error();
    Result<StepRecord> made = makeOnly(index, begin);
    if (!made)
      return made;
    record = std::move(*made);
  }
  if (*counts) {
    record.targets = (*counts)->total;
    if (const std::string text = targets->notice(**counts, index + 1); team.leads() && !text.empty())
      logLine(text);
  }
  record.samplesPerSecond =
      double(program.microBatch) * program.accumulation * double(ranks) / *record.stepSeconds;
  return record;
}

Status Run::step(uint64_t index) {
  Result<StepRecord> record = make(index);
  if (!record)
    return Error{record.error().code, fmt::format("step {}: {}", index + 1, record.error().message),
                 record.error().hint};
  diagnostics.keep(*record, guard.batchOf(index));
  if (record->targets != 0)
    if (Status named = nameLostNumber(*record, index); !named)
      return named;
  const Result<uint64_t> done = guard.act(*record);
  if (!done)
    return done.error();
  stepsDone = *done;
  return stepsDone <= index ? Status() : endStep(*record, index); // unless it went back
}

/// What follows a step that the run keeps.
Status Run::endStep(StepRecord &record, uint64_t index) {
  const Result<SaveNeeds> needs = agreeAfterStep();
  if (!needs)
    return needs.error();
  if (evaluatesAfter(index))
    if (Status evaluated = evaluateInto(record.evalLoss); !evaluated)
      return evaluated;
  addPosition(record);
  tell(record);
  if (replicas && stepsDone % options.checkReplicas == 0)
    if (Status compared = replicas->run(stepsDone); !compared)
      return compared;
  if (Status status = checkLossScale(record); !status)
    return status;
  return saveIfDue(*needs);
}

/// The held-out loss, unless the run is asked to end meanwhile.
Status Run::evaluateInto(std::optional<double> &loss) {
  Result<std::optional<double>> mean = evaluate(*executor, *evalData, *targets, [this]() -> Result<bool> {
    const Status agreed = agreeToStop();
    return agreed ? Result<bool>(stopping) : Result<bool>(agreed.error());
  });
  if (!mean && mean.error().code == ExitCode::Corrupt)
    return Error{mean.error().code, options.program + ": " + mean.error().message, mean.error().hint};
  if (!mean)
    return mean.error();
  executor->takeTimings(); // the trace shows training, and so do the figures of communication
  executor->takeExposedNs();
  communicated = team.totals();
  loss = *mean;
  return {};
}

Status Run::evaluateAlone() {
  const Program &program = executor->program();
  if (team.leads())
    printHead(program, evalData->describe(), weights, numSteps, seed);
  StepRecord record;
  record.step = firstStep;
  record.time = secondsSince1970();
  const int64_t begin = nowNs();
  if (Status evaluated = evaluateInto(record.evalLoss); !evaluated)
    return evaluated;
  if (!record.evalLoss)
    return Error{ExitCode::Interrupted, "interrupted before the end of the data; no loss is known", ""};
  if (team.leads())
    printLine(fmt::format("eval_loss {:.9g}  after step {}  {} batches in {:.3g} s", *record.evalLoss,
                          firstStep, evalData->numBatches(), static_cast<double>(nowNs() - begin) * 1e-9));
  if (log)
    log->write(record);
  if (!std::isfinite(*record.evalLoss))
    return Error{ExitCode::Diverged,
                 fmt::format("'{}': the held-out loss is {}", evalData->path(), *record.evalLoss),
                 "look for samples that are not finite, and at the weights: " + weights};
  return {};
}

Status Run::finish() {
  if (Status status = writeTrace(); !status)
    return status;
  if (checkpointer)
    if (Status status = checkpointer->finish(*executor, position()); !status)
      return status;
  if (!options.saveWeights.empty()) {
    if (Status status = saveWeights(*executor, options.saveWeights, team.own()); !status)
      return status;
    if (team.leads())
      logLine(fmt::format("weights saved to '{}'", options.saveWeights));
  }
  if (const std::string summary = replicas ? replicas->summary() : ""; team.leads() && !summary.empty())
    logLine(summary);
  if (const Storage *storage = executor->storageArena(); storage && team.leads())
    logLine(describeTotals(*storage));
  const bool whole = options.wholeSummary || executor->program().watch.comms;
  if (const std::string summary = team.summary(whole ? SIZE_MAX : kShortSummary);
      team.leads() && !summary.empty())
    logLine("communication of rank 0\n" + summary.substr(0, summary.size() - 1));
  return stopping ? Status(interruption()) : Status();
}

/// What is told at the end of a run that was asked to end.
Error Run::interruption() const {
  const std::string name = interruptName(); // empty: another rank was asked
  const std::string by = name.empty() ? "" : " by " + name;
  const std::string when = stepsDone == 0 ? "before the first step" : fmt::format("after step {}", stepsDone);
  if (checkpointer)
    return Error{ExitCode::Interrupted,
                 fmt::format("interrupted {}{}; the checkpoint is '{}'", when, by, checkpointer->newest()),
                 ""};
  if (options.saveWeights.empty())
    return Error{ExitCode::Interrupted, fmt::format("interrupted {}{}; nothing was kept", when, by),
                 "give --save DIR to resume later"};
  return Error{ExitCode::Interrupted,
               fmt::format("interrupted {}{}; the weights are in '{}'", when, by, options.saveWeights), ""};
}

static Status runAll(Run &run, bool evalOnly) {
  if (Status status = run.prepare(); !status)
    return status;
  if (evalOnly)
    return run.evaluateAlone();
  if (Status status = run.steps(); !status) {
    if (Status traced = run.writeTrace(); !traced) // what led to the failure
      logLine(traced.error().message);
    return status;
  }
  return run.finish();
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
  Run run(options, **team);
  return (*team)->leave(options.dryRun ? run.explain() : runAll(run, options.evalOnly));
}

} // namespace ds::rt
