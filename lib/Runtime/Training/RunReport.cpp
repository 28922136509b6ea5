//===- RunReport.cpp - What a run says of its steps -------------------------------------===//
#include "RunReport.h"

#include "Monitor/Profile.h"
#include "OpenDevice.h"
#include "Process/Clock.h"
#include "Process/Messages.h"
#include "Report.h"
#include "SentBytes.h"

#include "ds/Runtime/Files/AtomicFile.h"

#include <fmt/format.h>

#include <unistd.h>
#include <utility>

namespace ds::rt {

/// Collectives that the table at the end names, unless all are asked for: what ranks tell then is ten lines.
static constexpr size_t kShortSummary = 6;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

/// The log of this rank. A run that is resumed goes on with that of before, from which the steps are cut off
/// that it repeats; an evaluation alone makes none.
Status RunReport::openLog(const std::string &path) {
  const bool goesOn = run.start.checkpoint() != nullptr;
  if (goesOn && !run.options.evalOnly) {
    const uint64_t step = run.start.step();
    const Result<uint64_t> dropped = dropLaterSteps(path, step);
    if (!dropped) // no log is worth a training
      logLine(dropped.error().message + "; steps will be there twice");
    else if (*dropped > 0)
      logLine(fmt::format("log '{}': {} line{} after step {} dropped, which {} repeated", path, *dropped,
                          *dropped == 1 ? "" : "s", step, *dropped == 1 ? "is" : "are"));
  }
  Result<JsonLog> file = JsonLog::open(path, /*append=*/goesOn, logLine);
  if (!file)
    return file.error();
  log.emplace(std::move(*file));
  return {};
}

Status RunReport::open() {
  const TrainOptions &options = run.options;
  if (!options.logJsonl.empty() && (run.team.leads() || options.logAllRanks))
    if (Status status = openLog(tracePath(options.logJsonl, run.team.rank())); !status)
      return status;
  if (!run.team.leads())
    return {};
  if (options.evalOnly) // monitors show steps
    return {};
  const bool goesOn = run.start.checkpoint() != nullptr;
  Result<Monitors> opened = Monitors::open(
      run.program().watch,
      goesOn ? std::optional(run.data.training().position(run.start.step())) : std::nullopt, logLine);
  if (!opened)
    return opened.error();
  monitors.emplace(std::move(*opened));
  return {};
}

Status RunReport::writeTrace() const {
  return trace ? trace->write(tracePath(run.options.trace, run.team.rank())) : Status();
}

//===----------------------------------------------------------------------===//
// The head
//===----------------------------------------------------------------------===//

void RunReport::begin(uint64_t tokens) {
  const Program &program = run.program();
  sent = sentByStep(program);
  if (!run.options.trace.empty()) {
    nameTracks(trace.emplace(run.team.rank(), run.team.world()), program, run.team.rank());
    trace->setOrigin(nowNs()); // all ranks have just met
    run.executor->measure(true);
  }
  if (run.device)
    logLine(run.device->describe() + "; " + describeMemory(run.device->memory(), program) + "; " +
            describePhases(run.clock.phases()));
  if (!run.team.leads())
    return;
  printHeadOf(run.data.training());
  line.emplace(run.numSteps, tokens, program.predicted, mayColour(STDOUT_FILENO));
  printed.emplace(run.options.logEvery, program.watch.stepsPerPrint);
}

void RunReport::printHeadOf(const DataSource &data) const {
  printHead(run.executor->whole(), data.describe(), run.start.weights(), run.numSteps, run.start.seed());
}

//===----------------------------------------------------------------------===//
// What is measured
//===----------------------------------------------------------------------===//

bool RunReport::isProfiled(uint64_t index) const {
  const std::optional<ProfileSettings> &settings = run.program().watch.profile;
  return settings && run.team.leads() && index + 1 == settings->step;
}

void RunReport::beforeStep(uint64_t index) const {
  if (isProfiled(index))
    run.executor->measure(true);
}

std::vector<Timing> RunReport::take(uint64_t index, int64_t begin) {
  std::vector<Timing> timings = run.executor->takeTimings();
  if (trace)
    addToTrace(*trace, run.program(), run.team.rank(), index + 1, begin, timings);
  return timings;
}

void RunReport::profile(uint64_t index, double seconds, const std::vector<Timing> &timings) const {
  if (!isProfiled(index))
    return;
  run.executor->measure(trace.has_value());
  const Program &program = run.program();
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

/// The time that is exposed is also what a rank waits for a slower one.
void RunReport::addCommunication(StepRecord &record) {
  if (run.team.world() == 1)
    return;
  const CommTotals now = run.team.totals();
  record.commBytes = now.bytes - communicated.bytes;
  record.sentBytes = sent;
  record.commSeconds = now.seconds - communicated.seconds;
  record.commExposedSeconds = static_cast<double>(run.executor->takeExposedNs()) * 1e-9;
  communicated = now;
}

/// Steps that cannot be recorded are slower: that is said once.
void RunReport::addGraph(StepRecord &record) {
  if (!run.device)
    return;
  const GraphRun graph = run.executor->graph();
  record.graph = graph.recorded;
  record.graphReason = graph.refusal;
  if (!record.graphReason.empty() && !std::exchange(toldOfGraph, true))
    logLine(fmt::format("step {}: no CUDA graph can be recorded, so that commands are started one by one "
                        "(DS_CUDA_GRAPH=require makes it an error): {}",
                        record.step, record.graphReason));
}

void RunReport::addTo(StepRecord &record) {
  addCommunication(record);
  addGraph(record);
  if (!std::exchange(toldOfStart, true))
    record.startupSeconds = run.clock.phases();
}

std::string RunReport::summary() const {
  const bool whole = run.options.wholeSummary || run.program().watch.comms;
  std::string text = run.team.summary(whole ? SIZE_MAX : kShortSummary);
  if (!text.empty())
    text = "communication of rank 0\n" + text;
  return text + describeSent(sent);
}

void RunReport::skip() {
  run.executor->takeTimings();
  run.executor->takeExposedNs();
  communicated = run.team.totals();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void RunReport::write(const StepRecord &record, uint64_t samples, bool last) {
  if (line) {
    const std::string text = line->spell(record);
    if (printed->isNext(record.step, static_cast<double>(nowNs()) * 1e-9,
                        last || !record.evaluations.empty()))
      printLine(text);
  }
  writeLog(record);
  if (monitors)
    monitors->write(record, samples);
}

void RunReport::writeLog(const StepRecord &record) {
  if (log)
    log->write(record);
}

} // namespace ds::rt
