//===- Trainer.cpp - A training run --------------------------------------------===//
//
// The order of preparation is the order of cost: options, program, outputs that must be writable, data, and
// only then memory and weights.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Trainer.h"

#include "Clock.h"
#include "Interrupt.h"
#include "Report.h"

#include "ds/Runtime/Formats/AtomicFile.h"
#include "ds/Runtime/Formats/DataSource.h"
#include "ds/Runtime/Weights.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

namespace ds::rt {
namespace {

Error invalid(std::string message, std::string hint) {
  return Error{ExitCode::Invalid, std::move(message), std::move(hint)};
}

/// What this ds-run cannot do is refused by name, never ignored.
Status checkOptions(const TrainOptions &options) {
  if (options.device == "cuda")
    return Error{ExitCode::Device, "--device cuda: this build has no CUDA part (libds-cuda.so)",
                 "compile for --target cpu and run with --device cpu"};
  if (options.device != "cpu")
    return Error{ExitCode::Usage, fmt::format("--device {}: known devices are cpu and cuda", options.device),
                 ""};
  if (options.ranks != 1)
    return invalid(fmt::format("--ranks {}: this ds-run runs one rank", options.ranks), "leave --ranks out");
  if (!options.save.empty())
    return invalid("--save: checkpoints are not supported yet", "use --save-weights FILE.safetensors");
  if (!options.resume.empty())
    return invalid("--resume: checkpoints are not supported yet", "use --weights FILE.safetensors");
  if (options.evalEvery > 0 && options.evalData.empty())
    return invalid("--eval-every needs --eval-data", "give the held-out data with --eval-data FILE");
  return {};
}

Status checkProgram(const Program &program, const TrainOptions &options) {
  if (program.world != 1)
    return invalid(
        fmt::format("{}: made for {} ranks, but this ds-run runs one rank", options.program, program.world),
        "compile with --ranks 1");
  if (!options.evalData.empty() && program.evaluation < 0)
    return invalid(fmt::format("{}: --eval-data: the program has no evaluation segment", options.program),
                   "leave --eval-data out");
  return {};
}

/// Opens and drops an output, so that one that cannot be written is known before the first step.
Status checkWritable(const std::string &path) {
  if (path.empty())
    return {};
  Result<AtomicFile> file = AtomicFile::create(path);
  return file ? Status() : Status(file.error());
}

Result<DataSource> openData(const std::string &path, const TrainOptions &options, const Program &program,
                            bool evaluation) {
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
  data.shuffle = options.shuffle && !evaluation;
  data.seed = options.seed;
  if (!evaluation)
    data.notice = logLine;
  return DataSource::open(data, inputSpecs(program));
}

/// The values of a finished step by the names of the program's outputs.
StepRecord readOutputs(const Executor &executor, uint64_t step) {
  StepRecord record;
  record.step = step;
  for (const Output &output : executor.program().outputs) {
    const double value = executor.read(output);
    if (output.name == "loss")
      record.loss = value;
    else if (output.name == "grad_norm")
      record.gradNorm = value;
    else if (output.name == "lr")
      record.lr = value;
    else if (output.name == "loss_scale")
      record.lossScale = value;
    else if (output.name == "skipped")
      record.skipped = value != 0;
  }
  record.peakBytes = executor.arenaBytes();
  return record;
}

/// One run: the open files and the loaded program.
class Run {
public:
  explicit Run(const TrainOptions &options) : options(options) {}

  Status prepare();
  Status steps();
  Status finish();
  Status writeTrace() const { return trace ? trace->write(options.trace) : Status(); }

private:
  Status loadStates();
  Status step(uint64_t index);
  Status evaluate(double &loss);
  Status fill(DataSource &source, uint64_t step, uint32_t microStep) {
    return source.fill(step, microStep, /*rank=*/0, inputs);
  }
  bool evaluatesAfter(uint64_t index) const {
    const bool last = index + 1 == numSteps || interrupted();
    return evalData && (last || (options.evalEvery > 0 && (index + 1) % options.evalEvery == 0));
  }

  const TrainOptions &options;
  std::unique_ptr<Executor> executor;
  std::optional<DataSource> data, evalData;
  std::optional<JsonLog> log;
  std::optional<ChromeTrace> trace;
  std::vector<void *> inputs;
  std::string weights; ///< where they come from, for the head
  uint64_t numSteps = 0, tokens = 0;
};

Status Run::prepare() {
  Result<Program> program = readProgram(options.program);
  if (!program)
    return program.error();
  if (Status status = checkProgram(*program, options); !status)
    return status;
  for (const std::string &path : {options.saveWeights, options.trace})
    if (Status status = checkWritable(path); !status)
      return status;
  Result<DataSource> source = openData(options.data, options, *program, /*evaluation=*/false);
  if (!source)
    return source.error();
  data.emplace(std::move(*source));
  if (!options.evalData.empty()) {
    Result<DataSource> held = openData(options.evalData, options, *program, /*evaluation=*/true);
    if (!held)
      return held.error();
    evalData.emplace(std::move(*held));
  }
  Result<std::unique_ptr<Executor>> loaded = Executor::load(std::move(*program));
  if (!loaded)
    return Error{loaded.error().code, options.program + ": " + loaded.error().message, loaded.error().hint};
  executor = std::move(*loaded);
  if (Status status = loadStates(); !status)
    return status;
  if (!options.logJsonl.empty()) {
    Result<JsonLog> opened = JsonLog::open(options.logJsonl, /*append=*/false, logLine);
    if (!opened)
      return opened.error();
    log.emplace(std::move(*opened));
  }
  for (const Input &input : executor->program().inputs)
    inputs.push_back(executor->data(input.buffer));
  return {};
}

/// The file given, else the one beside the program, else random numbers.
Status Run::loadStates() {
  const Program &program = executor->program();
  std::string path = options.weights;
  if (path.empty() && !program.weightsFile.empty()) {
    path = std::filesystem::path(options.program).parent_path() / program.weightsFile;
    if (std::error_code unused; !std::filesystem::exists(path, unused))
      path.clear();
  }
  weights = path.empty() ? fmt::format("seed {}", options.seed) : fmt::format("'{}'", path);
  if (Status status = initializeStates(*executor, options.seed, /*alsoRequired=*/!path.empty()); !status)
    return status;
  return path.empty() ? Status() : loadWeights(*executor, path);
}

Status Run::steps() {
  const Program &program = executor->program();
  numSteps = options.steps.value_or(data->numBatches());
  tokens = tokensPerStep(program);
  if (!options.trace.empty()) {
    nameTracks(trace.emplace(/*rank=*/0u, program.world), program);
    executor->measure(true);
  }
  printHead(program, data->describe(), weights, numSteps, options.seed);
  for (uint64_t index = 0; index < numSteps && !interrupted(); ++index)
    if (Status status = step(index); !status)
      return status;
  return {};
}

/// Refuses to go on with NaN or infinity. An activation may hide a NaN from the loss: the gradients still
/// have it.
static Status checkFinite(const StepRecord &record) {
  if (record.skipped.value_or(false)) // with loss scaling an overflow is a skipped step, not a divergence
    return {};
  auto diverged = [&](const char *what, double value) {
    return Error{ExitCode::Diverged, fmt::format("step {}: the {} is {}", record.step, what, value),
                 "lower the learning rate, clip gradients, or look for bad samples in this batch"};
  };
  if (record.loss && !std::isfinite(*record.loss))
    return diverged("loss", *record.loss);
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    return diverged("gradient norm", *record.gradNorm);
  return {};
}

Status Run::step(uint64_t index) {
  const Program &program = executor->program();
  const int64_t begin = nowNs();
  Status status = executor->runStep([&](uint32_t microStep) { return fill(*data, index, microStep); });
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (trace)
    addToTrace(*trace, program, index + 1, begin, executor->takeTimings());
  if (!status)
    return Error{status.error().code, fmt::format("step {}: {}", index + 1, status.error().message),
                 status.error().hint};
  StepRecord record = readOutputs(*executor, index + 1);
  record.stepSeconds = seconds;
  record.samplesPerSecond = double(program.microBatch) * program.accumulation * program.world / seconds;
  if (Status status = checkFinite(record); !status)
    return status;
  if (evaluatesAfter(index))
    if (Status evaluated = evaluate(record.evalLoss.emplace()); !evaluated)
      return evaluated;
  printStep(record, numSteps, tokens, program.predicted);
  if (log)
    log->write(record);
  return {};
}

/// Mean of the held-out loss over all whole batches.
Status Run::evaluate(double &loss) {
  const Program &program = executor->program();
  const Output *output = nullptr;
  for (const Output &candidate : program.outputs)
    if (candidate.name == "eval_loss")
      output = &candidate;
  if (!output)
    return Error{ExitCode::Corrupt, fmt::format("{}: no output 'eval_loss'", options.program), ""};
  const uint64_t batches = evalData->numBatches();
  double sum = 0;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    if (Status status = fill(*evalData, batch, 0); !status)
      return status;
    if (Status status = executor->run(static_cast<uint32_t>(program.evaluation)); !status)
      return status;
    sum += executor->read(*output);
  }
  executor->takeTimings(); // the trace shows training
  loss = sum / static_cast<double>(batches);
  return {};
}

Status Run::finish() {
  if (Status status = writeTrace(); !status)
    return status;
  if (!options.saveWeights.empty()) {
    if (Status status = saveWeights(*executor, options.saveWeights); !status)
      return status;
    logLine(fmt::format("weights saved to '{}'", options.saveWeights));
  }
  if (interrupted())
    return Error{ExitCode::Interrupted, "interrupted after a finished step",
                 options.saveWeights.empty() ? "give --save-weights to keep what was learnt" : ""};
  return {};
}

} // namespace

Status train(const TrainOptions &options) {
  watchInterrupts();
  if (Status status = checkOptions(options); !status)
    return status;
  Run run(options);
  if (Status status = run.prepare(); !status)
    return status;
  if (Status status = run.steps(); !status) {
    if (Status traced = run.writeTrace(); !traced) // what led to the failure
      logLine(traced.error().message);
    return status;
  }
  return run.finish();
}

} // namespace ds::rt
