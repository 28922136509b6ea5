//===- Trainer.cpp - A training run --------------------------------------------===//
//
// The order of preparation is the order of cost: options, the other ranks, the program, outputs that must be
// writable, data, and only then memory and weights. Then the ranks make sure that they are about to do the
// same, and from there on decide everything together.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Trainer.h"

#include "CheckRun.h"
#include "Clock.h"
#include "Cpu/Team.h"
#include "Evaluation.h"
#include "Interrupt.h"
#include "OpenDevice.h"
#include "Report.h"
#include "StartUp.h"
#include "StepOutcome.h"

#include "ds/Runtime/Formats/DataSource.h"
#include "ds/Runtime/Formats/Outputs.h"
#include "ds/Runtime/Weights.h"

#include <fmt/format.h>

#include <filesystem>

namespace ds::rt {
namespace {

/// An output that cannot be written is known before the first step.
Status checkWritable(const char *option, const std::string &path) {
  return path.empty() ? Status() : checkOutputPath({option, path});
}

/// Where a rank writes its trace: the first one the file given, rank 2 "trace.rank2.json".
std::string tracePath(const std::string &path, uint32_t rank) {
  if (rank == 0 || path.empty())
    return path;
  std::filesystem::path file(path);
  const std::string extension = file.extension();
  return file.replace_extension(fmt::format(".rank{}{}", rank, extension));
}

Result<DataSource> openData(const std::string &path, const TrainOptions &options, const Program &program,
                            bool evaluation, bool tells) {
  DataOptions data;
  data.path = path;
  if (!options.tokenDtype.empty()) {
    data.tokenWidth = parseTokenWidth(options.tokenDtype);
    if (!data.tokenWidth)
      return Error{ExitCode::Usage,
                   fmt::format("--token-dtype {}: known are u16 and u32", options.tokenDtype), ""};
  }
  data.microBatch = program.microBatch;
  data.accumulation = evaluation ? 1 : program.accumulation;
  data.world = program.mesh.size(program.dataAxes);
  data.shuffle = options.shuffle && !evaluation;
  data.seed = options.seed;
  if (!evaluation && tells)
    data.notice = logLine;
  return DataSource::open(data, inputSpecs(program));
}

/// One run of one rank: the open files and the loaded program.
class Run {
public:
  Run(const TrainOptions &options, Team &team) : options(options), team(team) {}

  Status prepare();
  Status steps();
  Status finish();
  Status writeTrace() const { return trace ? trace->write(tracePath(options.trace, team.rank())) : Status(); }

private:
  Status openFiles(const Program &program);
  Status load(Program program);
  Status loadStates();
  Status agree();
  Result<std::string> sampleSign(DataSource &source);
  void startTrace();
  Status step(uint64_t index);
  Status agreeToStop();
  void addCommunication(StepRecord &record);
  void addGraph(StepRecord &record);
  Status evaluateInto(std::optional<double> &loss);
  Error interruption() const;
  Status fill(DataSource &source, uint64_t step, uint32_t microBatch) {
    return source.fill(step, microBatch, executor->dataPosition(), executor->inputs(microBatch));
  }
  bool evaluatesAfter(uint64_t index) const {
    const bool last = index + 1 == numSteps;
    return evalData && !stopping && (last || (options.evalEvery > 0 && (index + 1) % options.evalEvery == 0));
  }

  const TrainOptions &options;
  Team &team;
  std::unique_ptr<Device> device; ///< null: the CPU
  std::unique_ptr<Executor> executor;
  std::optional<DataSource> data, evalData;
  std::optional<JsonLog> log;
  std::optional<ChromeTrace> trace;
  std::string programSign; ///< digest; empty with one rank
  std::string weights;     ///< where they come from, for the head
  std::string weightsPath; ///< empty: from the seed
  uint64_t numSteps = 0, stepsDone = 0, tokens = 0;
  CommTotals communicated; ///< until the last step's end
  bool stopping = false;   ///< some rank was asked to end
  bool toldOfGraph = false;
};

Status Run::prepare() {
  Result<std::unique_ptr<Device>> opened = openDevice(options, team.ranks());
  if (!opened)
    return opened.error();
  device = std::move(*opened);
  Result<Program> program = readProgram(options.program);
  if (!program)
    return program.error();
  if (Status status = checkProgram(*program, options, team.world()); !status)
    return status;
  if (Status status = checkTarget(*program, options); !status)
    return status;
  if (Status status = openFiles(*program); !status)
    return status;
  if (team.world() > 1)
    programSign = hashPlan(*program); // of all stages: loading keeps one
  if (Status status = load(std::move(*program)); !status)
    return Error{status.error().code, options.program + ": " + status.error().message, status.error().hint};
  if (Status status = loadStates(); !status)
    return status;
  numSteps = options.steps.value_or(data->numBatches());
  if (Status status = agree(); !status)
    return status;
  if (options.logJsonl.empty() || !team.leads())
    return {};
  Result<JsonLog> file = JsonLog::open(options.logJsonl, /*append=*/false, logLine);
  if (!file)
    return file.error();
  log.emplace(std::move(*file));
  return {};
}

Status Run::openFiles(const Program &program) {
  if (Status status = checkWritable("--save-weights", team.leads() ? options.saveWeights : ""); !status)
    return status;
  if (Status status = checkWeightsFit(program, team.leads() ? options.saveWeights : ""); !status)
    return status;
  if (Status status = checkWritable("--trace", tracePath(options.trace, team.rank())); !status)
    return status;
  Result<DataSource> source =
      openData(options.data, options, program, /*evaluation=*/false, /*tells=*/team.leads());
  if (!source)
    return source.error();
  data.emplace(std::move(*source));
  if (options.evalData.empty())
    return {};
  Result<DataSource> held = openData(options.evalData, options, program, /*evaluation=*/true, false);
  if (!held)
    return held.error();
  evalData.emplace(std::move(*held));
  return {};
}

Status Run::load(Program program) {
  ExecutorOptions settings;
  settings.rank = team.rank();
  Result<CommunicatorOf> communicator = team.communicatorsFor(program);
  if (!communicator)
    return communicator.error();
  settings.communicator = std::move(*communicator);
  settings.device = device.get();
  settings.failed = [this](const Error &error) { team.abort(error); };
  Result<std::unique_ptr<Executor>> loaded = Executor::load(std::move(program), settings);
  if (!loaded)
    return loaded.error();
  executor = std::move(*loaded);
  return {};
}

/// The file given, else the one beside the program, else random numbers.
Status Run::loadStates() {
  const Program &program = executor->program();
  weightsPath = options.weights;
  if (weightsPath.empty() && !program.weightsFile.empty()) {
    weightsPath = std::filesystem::path(options.program).parent_path() / program.weightsFile;
    if (std::error_code unused; !std::filesystem::exists(weightsPath, unused))
      weightsPath.clear();
  }
  weights = weightsPath.empty() ? fmt::format("seed {}", options.seed) : fmt::format("'{}'", weightsPath);
  if (Status status = initializeStates(*executor, options.seed, /*alsoRequired=*/!weightsPath.empty());
      !status)
    return status;
  return weightsPath.empty() ? Status() : loadWeights(*executor, weightsPath);
}

/// What the first micro-batch of the first ranks is, whichever rank this is.
Result<std::string> Run::sampleSign(DataSource &source) {
  const std::vector<void *> inputs = executor->inputs();
  if (Status status = source.fill(0, 0, /*rank=*/0, inputs); !status)
    return status.error();
  uint64_t sign = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer &buffer = executor->program().buffers[executor->program().inputs[i].buffer];
    sign = addToSign(sign, {static_cast<const std::byte *>(inputs[i]), extentBytes(buffer)});
  }
  return fmt::format("{} samples of digest {:016x}", source.numSamples(), sign);
}

/// Nothing is shared before every rank is known to be about to do the same.
Status Run::agree() {
  if (team.world() == 1)
    return {};
  Facts facts = {{"the build of ds-run", executableSign()},
                 {"the program", programSign},
                 {"--seed", std::to_string(options.seed)},
                 {"the number of steps", std::to_string(numSteps)},
                 {"--eval-every", std::to_string(options.evalEvery)},
                 {"--save-weights", options.saveWeights.empty() ? "not given" : "given"},
                 {"the weights", weightsPath.empty() ? "none but the seed" : fileSign(weightsPath)}};
  for (auto [name, source] : {std::pair("the data", &data), {"the held-out data", &evalData}}) {
    Result<std::string> sign = *source ? sampleSign(**source) : Result<std::string>(std::string("none"));
    if (!sign)
      return sign.error();
    facts.emplace_back(name, *sign);
  }
  return team.agree(facts);
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
  if (team.leads())
    printHead(program, data->describe(), weights, numSteps, options.seed);
  if (Status status = agreeToStop(); !status)
    return status;
  for (uint64_t index = 0; index < numSteps && !stopping; ++index)
    if (Status status = step(index); !status)
      return status;
  return {};
}

/// An interruption of any rank stops all of them here.
Status Run::agreeToStop() {
  Result<bool> stop = team.anyOf(interrupted());
  if (!stop)
    return stop.error();
  stopping = *stop;
  return {};
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

/// Steps that cannot be recorded are slower: that is said once.
void Run::addGraph(StepRecord &record) {
  if (!device)
    return;
  record.graph = executor->ranAsGraph();
  record.graphReason = executor->graphRefusal();
  if (!record.graphReason.empty() && !std::exchange(toldOfGraph, true))
    logLine(fmt::format("step {}: no CUDA graph can be recorded, so that commands are started one by one "
                        "(DS_CUDA_GRAPH=require makes it an error): {}",
                        record.step, record.graphReason));
}

Status Run::step(uint64_t index) {
  const Program &program = executor->program();
  const int64_t begin = nowNs();
  Status status = executor->runStep([&](uint32_t microBatch) { return fill(*data, index, microBatch); });
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (trace)
    addToTrace(*trace, program, team.rank(), index + 1, begin, executor->takeTimings());
  if (!status)
    return Error{status.error().code, fmt::format("step {}: {}", index + 1, status.error().message),
                 status.error().hint};
  stepsDone = index + 1;
  StepRecord record = readOutputs(*executor, index + 1);
  record.stepSeconds = seconds;
  record.samplesPerSecond =
      double(program.microBatch) * program.accumulation * program.mesh.size(program.dataAxes) / seconds;
  addCommunication(record);
  addGraph(record);
  if (Status status = checkFinite(record); !status)
    return status;
  if (Status status = agreeToStop(); !status)
    return status;
  if (evaluatesAfter(index))
    if (Status evaluated = evaluateInto(record.evalLoss); !evaluated)
      return evaluated;
  if (team.leads())
    printStep(record, numSteps, tokens, program.predicted);
  if (log)
    log->write(record);
  return checkLossScale(record);
}

/// The held-out loss, unless the run is asked to end meanwhile.
Status Run::evaluateInto(std::optional<double> &loss) {
  Result<std::optional<double>> mean = evaluate(*executor, *evalData, [this]() -> Result<bool> {
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

Status Run::finish() {
  if (Status status = writeTrace(); !status)
    return status;
  if (!options.saveWeights.empty()) {
    if (Status status = saveWeights(*executor, options.saveWeights, team.own()); !status)
      return status;
    if (team.leads())
      logLine(fmt::format("weights saved to '{}'", options.saveWeights));
  }
  if (const std::string summary = team.summary(); team.leads() && !summary.empty())
    logLine("communication of rank 0\n" + summary.substr(0, summary.size() - 1));
  return stopping ? Status(interruption()) : Status();
}

/// What is told at the end of a run that was asked to end.
Error Run::interruption() const {
  const std::string name = interruptName(); // empty: another rank was asked
  const std::string by = name.empty() ? "" : " by " + name;
  const std::string when = stepsDone == 0 ? "before the first step" : fmt::format("after step {}", stepsDone);
  if (options.saveWeights.empty())
    return Error{ExitCode::Interrupted, fmt::format("interrupted {}{}; nothing was kept", when, by),
                 "give --save-weights FILE to keep what was learnt"};
  return Error{ExitCode::Interrupted,
               fmt::format("interrupted {}{}; the weights are in '{}'", when, by, options.saveWeights), ""};
}

Status runAll(Run &run) {
  if (Status status = run.prepare(); !status)
    return status;
  if (Status status = run.steps(); !status) {
    if (Status traced = run.writeTrace(); !traced) // what led to the failure
      logLine(traced.error().message);
    return status;
  }
  return run.finish();
}

} // namespace

Status train(const TrainOptions &options) {
  watchInterrupts(/*parentPassesOn=*/options.place.kind == RankIdentity::Kind::Pmix);
  if (Status status = checkOptions(options); !status)
    return status;
  Result<std::unique_ptr<Team>> team = Team::join(options);
  if (!team)
    return team.error();
  Run run(options, **team);
  return (*team)->leave(runAll(run));
}

} // namespace ds::rt
