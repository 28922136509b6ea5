//===- PrepareRun.cpp - Everything before the first step ----------------------------===//
//
// The order of preparation is the order of cost: options, the other ranks, the program, the checkpoint,
// outputs that must be writable, data, and only then memory and weights. Then the ranks make sure that they
// are about to do the same, and from there on decide everything together.
//
//===---------------------------------------------------------------------------===//

#include "CheckRun.h"
#include "Evaluation.h"
#include "Files/Text.h"
#include "OpenData.h"
#include "OpenDevice.h"
#include "Process/Messages.h"
#include "Run.h"
#include "Saving/SaveDirectory.h"
#include "StartUp.h"
#include "State/LostWeights.h"
#include "StepOutcome.h"

#include "ds/Runtime/Files/Outputs.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

#include <cstdio>

namespace ds::rt {

/// An output that cannot be written is known before the first step.
static Status checkWritable(const char *option, const std::string &path) {
  return path.empty() ? Status() : checkOutputPath({option, path});
}

/// The program, which these ranks can train.
Result<Program> Run::open() {
  Result<Program> program = readProgram(options.program);
  if (!program)
    return program;
  if (Status status = checkProgram(*program, options, team.world()); !status)
    return status.error();
  if (Status status = checkTarget(*program, options); !status)
    return status.error();
  return program;
}

Status Run::prepare() {
  Result<std::unique_ptr<Device>> opened = openDevice(options, team.ranks());
  if (!opened)
    return opened.error();
  device = std::move(*opened);
  Result<Program> program = open();
  return program ? prepareFrom(std::move(*program)) : Status(program.error());
}

/// Says what is not finite in the weights' file. The run begins all the same, as an import ends well: nobody
/// knows here whether a step reads those elements. Collective.
static Status tellOfLost(LostWeights lost, const std::string &path, Team &team) {
  Status looked = lost.look(path, team.rank(), team.world());
  if (team.world() > 1) {
    const Result<std::vector<std::string>> found =
        team.fromAll(looked ? Result<std::string>(lost.pack()) : looked.error(), "look at the weights");
    if (!found)
      return found.error();
    for (uint32_t rank = 0; rank < team.world(); ++rank)
      if (rank != team.rank())
        lost.add((*found)[rank]);
  } else if (!looked) {
    return looked;
  }
  if (team.leads())
    for (const std::string &line : lost.lines())
      logLine(fmt::format("weights {}: {}", quote(path), line));
  return {};
}

Status Run::prepareFrom(Program program) {
  if (Status status = goOn(program); !status)
    return status;
  if (Status status = openFiles(program); !status)
    return status;
  if (!options.save.empty()) {
    Result<std::unique_ptr<Checkpointer>> saves =
        Checkpointer::open(options, program, resume.checkpoint(), team);
    if (!saves)
      return saves.error();
    checkpointer = std::move(*saves);
  }
  if (team.world() > 1)
    programSign = hashPlan(program); // of all stages: loading keeps one
  LostWeights lost(program);         // likewise
  if (Status status = load(std::move(program)); !status)
    return Error{status.error().code, options.program + ": " + status.error().message, status.error().hint};
  if (Status status = loadStates(); !status)
    return status;
  numSteps = stepsToMake();
  if (Status status = layOutSchedule(); !status)
    return status;
  if (Status status = agree(); !status)
    return status;
  if (!weightsPath.empty())
    if (Status status = tellOfLost(std::move(lost), weightsPath, team); !status)
      return status;
  return openLogs();
}

/// The log of this rank. A run that is resumed goes on with that of before, from which the steps are cut off
/// that it makes again; an evaluation alone makes none.
Status Run::openLog(const std::string &path) {
  const bool goesOn = resume.checkpoint() != nullptr;
  if (goesOn && !options.evalOnly) {
    const Result<uint64_t> dropped = dropLaterSteps(path, firstStep);
    if (!dropped) // no log is worth a training
      logLine(dropped.error().message + "; steps will be there twice");
    else if (*dropped > 0)
      logLine(fmt::format("log '{}': {} line{} after step {} dropped, which {} repeated", path, *dropped,
                          *dropped == 1 ? "" : "s", firstStep, *dropped == 1 ? "is" : "are"));
  }
  Result<JsonLog> file = JsonLog::open(path, /*append=*/goesOn, logLine);
  if (!file)
    return file.error();
  log.emplace(std::move(*file));
  return {};
}

/// The files that grow while the run goes on: rank 0's, and the logs of others where they are asked for.
Status Run::openLogs() {
  const bool goesOn = resume.checkpoint() != nullptr;
  if (!options.logJsonl.empty() && (team.leads() || options.logAllRanks))
    if (Status status = openLog(tracePath(options.logJsonl, team.rank())); !status)
      return status;
  if (!team.leads())
    return {};
  if (options.evalOnly) // monitors show steps
    return {};
  Result<Monitors> opened = Monitors::open(
      executor->program().watch, goesOn ? std::optional(data->position(firstStep)) : std::nullopt, logLine);
  if (!opened)
    return opened.error();
  monitors.emplace(std::move(*opened));
  return {};
}

/// What `--dry-run` asks for.
Status Run::explain() {
  Result<Program> program = open();
  if (!program)
    return program.error();
  if (Status status = goOn(*program); !status)
    return status;
  if (Status status = openFiles(*program); !status)
    return status;
  if (!options.save.empty())
    if (Status status = checkSaveDirectory(options, resume.checkpoint()); !status)
      return status;
  const Result<std::string> text = resume.describe(*program);
  if (!text)
    return text.error();
  numSteps = stepsToMake();
  if (team.leads())
    std::fputs(text->c_str(), stdout);
  if (const std::string why = spellNothingLeft(); team.leads() && !why.empty())
    std::fputs(("  " + why + "\n").c_str(), stdout);
  return {};
}

/// Chooses the checkpoint that the run goes on from, and takes from it what is not in the states. Without one
/// the run starts from a weights file or the seed.
Status Run::goOn(const Program &program) {
  if (!options.resume.empty())
    if (Status status = resume.choose(program); !status)
      return status;
  seed = options.seed.value_or(0);
  firstStep = tokensBefore = 0;
  if (const Checkpoint *checkpoint = resume.checkpoint()) {
    const Manifest &manifest = checkpoint->manifest();
    if (options.seed && *options.seed != manifest.seed)
      return Error{
          ExitCode::Usage,
          fmt::format("--seed {}: the checkpoint was made with seed {}", *options.seed, manifest.seed),
          "leave --seed out: a run resumes with the numbers that it began with"};
    seed = manifest.seed;
    firstStep = manifest.step;
    tokensBefore = manifest.data.tokens;
  }
  stepsDone = firstStep;
  const Result<std::string> file =
      resume.checkpoint() ? Result<std::string>(std::string()) : findWeights(program, options);
  if (!file)
    return file.error();
  weightsPath = *file;
  return {};
}

Status Run::openFiles(const Program &program) {
  if (Status status = checkWritable("--save-weights", team.leads() ? options.saveWeights : ""); !status)
    return status;
  if (Status status = checkWeightsFit(program, team.leads() ? options.saveWeights : ""); !status)
    return status;
  if (Status status = checkWritable("--trace", tracePath(options.trace, team.rank())); !status)
    return status;
  if (Status status = Diagnostics::makeDirectory(options.diagnostics); !status)
    return status;
  const std::string file = options.diagnostics.empty() ? "" : options.diagnostics + "/diagnostics";
  if (Status status = checkWritable("--diagnostics", file); !status)
    return status;
  return options.evalOnly ? openHeldOut(program) : openData(program);
}

Status Run::openData(const Program &program) {
  const Checkpoint *checkpoint = resume.checkpoint();
  std::function<void(std::string)> notice;
  if (team.leads())
    notice = logLine;
  Result<DataSource> source = openTrainingData(
      options, program, seed, checkpoint ? &checkpoint->manifest() : nullptr, std::move(notice));
  if (!source)
    return source.error();
  data.emplace(std::move(*source));
  return options.evalData.empty() ? Status() : openHeldOut(program);
}

Status Run::openHeldOut(const Program &program) {
  Result<DataSource> held = openHeldOutData(options, program);
  if (!held)
    return held.error();
  evalData.emplace(std::move(*held));
  return checkHeldOut(*evalData, program.mesh.size(program.dataAxes));
}

/// As many as are asked for, counted from the very first; else once over the data.
uint64_t Run::stepsToMake() const {
  if (options.evalOnly)
    return firstStep;
  if (options.steps)
    return *options.steps;
  const uint64_t consumed = data->position(firstStep), samples = data->numSamples();
  const uint64_t batch = data->position(firstStep + 1) - consumed;
  return firstStep + (samples > consumed ? (samples - consumed) / batch : 0);
}

/// Why a run that is resumed makes no step; empty where it makes some, or none was meant to be made.
std::string Run::spellNothingLeft() const {
  const Checkpoint *from = resume.checkpoint();
  if (!from || options.evalOnly || firstStep < numSteps)
    return {};
  return fmt::format("nothing is left to do: '{}' is of step {}, and {} {}", from->directory(), firstStep,
                     options.steps ? "--steps is" : "the data end after step", numSteps);
}

/// Gives a schedule of "auto" length the steps of the run. Where that changes what the checkpoint had, rates
/// change too, and that is said. A run that has nothing left to do changes nothing: its states may be saved.
Status Run::layOutSchedule() {
  if (const std::string why = spellNothingLeft(); !why.empty()) {
    if (team.leads())
      logLine(why);
    return {};
  }
  const Result<std::optional<double>> before = totalSteps(*executor);
  if (!before)
    return before.error();
  if (resume.checkpoint() && *before && **before > 0 && **before != static_cast<double>(numSteps) &&
      team.leads() && !options.evalOnly)
    logLine(fmt::format(
        "the schedule's length is \"auto\": it was laid out for {:.0f} steps and is now for {}, so "
        "that rates are others from step {} on",
        **before, numSteps, firstStep + 1));
  return setTotalSteps(*executor, numSteps);
}

Status Run::load(Program program) {
  ExecutorOptions settings;
  settings.rank = team.rank();
  Result<CommunicatorOf> communicator = team.communicatorsFor(program);
  if (!communicator)
    return communicator.error();
  settings.communicator = std::move(*communicator);
  settings.device = device.get();
  settings.storage = {
      options.nvme, options.nvmeParameters, options.verifyStorage,
      [rank = team.rank()](const std::string &line) { logLine(fmt::format("rank {}: {}", rank, line)); }};
  settings.failed = [this](const Error &error) { team.abort(error); };
  Result<std::unique_ptr<Executor>> loaded = Executor::load(std::move(program), settings);
  if (!loaded)
    return loaded.error();
  executor = std::move(*loaded);
  targets.emplace(*executor, team);
  return {};
}

/// From the checkpoint, else the file given, else the one beside the program, else random numbers. States
/// that a checkpoint has no value for start as in a new run. A damaged checkpoint may give way to an older
/// one, and then the data stand elsewhere too.
Status Run::loadStates() {
  if (Status status = initialize(); !status)
    return status;
  while (const Checkpoint *checkpoint = resume.checkpoint()) {
    weights = fmt::format("checkpoint '{}'", checkpoint->directory());
    const Result<bool> restored = resume.restore(*executor);
    if (!restored)
      return restored.error();
    if (*restored) {
      if (checkpointer)
        checkpointer->continuesFrom(*checkpoint);
      return {};
    }
    if (Status status = goOn(executor->program()); !status)
      return status;
    if (Status status = openFiles(executor->program()); !status)
      return status;
    if (Status status = initialize(); !status)
      return status;
  }
  return weightsPath.empty() ? Status() : loadWeights(*executor, weightsPath);
}

/// Gives all states their first values, those that a file gives too.
Status Run::initialize() {
  const Program &program = executor->program();
  weights = weightsPath.empty() ? fmt::format("seed {}", seed) : fmt::format("'{}'", weightsPath);
  return initializeStates(*executor, seed, /*alsoRequired=*/!weightsPath.empty() || resume.checkpoint(),
                          resume.restored(program));
}

/// What the data are, and the first micro-batch of the first ranks, whichever rank this is.
Result<std::string> Run::sampleSign(DataSource &source) {
  const std::vector<void *> inputs = executor->inputs();
  if (Status status = source.fill(data && &source == &*data ? firstStep : 0, 0, /*rank=*/0, inputs); !status)
    return status.error();
  uint64_t sign = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer &buffer = executor->program().buffers[executor->program().inputs[i].buffer];
    sign = addToSign(sign, {static_cast<const std::byte *>(inputs[i]), extentBytes(buffer)});
  }
  return fmt::format("{}, the first batch of digest {:016x}", source.sign(), sign);
}

/// Nothing is shared before every rank is known to be about to do the same.
Status Run::agree() {
  if (team.world() == 1)
    return {};
  Facts facts = {{"the build of ds-run", executableSign()},
                 {"the program", programSign},
                 {"--seed", std::to_string(seed)},
                 {"the checkpoint", resume.checkpoint() ? fmt::format("step {}", firstStep) : "none"},
                 {"--save", options.save.empty() ? "not given" : "given"},
                 {"the number of steps", std::to_string(numSteps)},
                 {"--eval-only", options.evalOnly ? "given" : "not given"},
                 {"--eval-every", std::to_string(options.evalEvery)},
                 {"--check-replicas", std::to_string(options.checkReplicas)},
                 {"--on-nan, --on-spike and what spikes are", spell(options.loss)},
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

} // namespace ds::rt
