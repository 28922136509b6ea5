//===- PrepareRun.cpp - Everything before the first step ----------------------------===//
//
// The order of preparation is the order of cost: options, the other ranks, the program, the checkpoint,
// outputs that must be writable, data, and only then memory and weights. Then the ranks make sure that they
// are about to do the same, and from there on decide everything together.
//
//===---------------------------------------------------------------------------===//

#include "CheckRun.h"
#include "Files/Text.h"
#include "Loss/Diagnostics.h"
#include "Loss/LossPolicy.h"
#include "OpenDevice.h"
#include "Process/Messages.h"
#include "RunParts.h"
#include "Saving/SaveDirectory.h"
#include "StartUp.h"
#include "State/LostWeights.h"
#include "StepOutcome.h"

#include "ds/Runtime/Files/Outputs.h"
#include "ds/Runtime/Formats/ChromeTrace.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

#include <cstdio>

namespace ds::rt {
namespace {

/// An output that cannot be written is known before the first step.
Status checkWritable(const char *option, const std::string &path) {
  return path.empty() ? Status() : checkOutputPath({option, path});
}

/// How many held-out data there are, and what they are called.
std::string spellNames(const std::vector<EvalData> &sets) {
  std::string text = fmt::format("{} given", sets.size());
  for (const EvalData &each : sets)
    text += each.name.empty() ? "" : ", " + each.name;
  return text;
}

/// Brings the parts of a run about, in order.
class Preparation {
public:
  explicit Preparation(RunParts &run) : run(run), options(run.options), team(run.team) {}

  Status prepare();
  Status explain();

private:
  Result<Program> open();
  Status prepareFrom(Program program);
  Status openFiles(const Program &program);
  Status openSaves(const Program &program);
  Status load(Program program);
  Status loadStates();
  uint64_t stepsToMake() const;
  std::string spellNothingLeft() const;
  Status layOutSchedule();
  Status agreeOn(const Program &program);
  Status agree();

  RunParts &run;
  const TrainOptions &options;
  Team &team;
};

/// The program, which these ranks can train.
Result<Program> Preparation::open() {
  Result<Program> program = readProgram(options.program);
  if (!program)
    return program;
  if (Status status = checkProgram(*program, options, team.world()); !status)
    return status.error();
  if (Status status = checkTarget(*program, options); !status)
    return status.error();
  return program;
}

Status Preparation::prepare() {
  Result<std::unique_ptr<Device>> opened = openDevice(options, team.ranks());
  if (!opened)
    return opened.error();
  run.device = std::move(*opened);
  run.clock.end("device");
  Result<Program> program = open();
  run.clock.end("program");
  return program ? prepareFrom(std::move(*program)) : Status(program.error());
}

/// Says what is not finite in the weights' file. The run begins all the same, as an import ends well: nobody
/// knows here whether a step reads those elements. Collective.
Status tellOfLost(LostWeights lost, const std::string &path, Team &team) {
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

Status Preparation::prepareFrom(Program program) {
  if (Status status = run.start.choose(program); !status)
    return status;
  if (Status status = openFiles(program); !status)
    return status;
  if (Status status = openSaves(program); !status)
    return status;
  LostWeights lost(program); // of all stages: loading keeps one
  // Channels and communicators follow from the program: ranks that do not have the same would wait for each
  // other.
  if (Status status = agreeOn(program); !status)
    return status;
  run.clock.end("files");
  if (Status status = team.connectFor(program); !status)
    return status;
  run.clock.end("ranks");
  if (Status status = load(std::move(program)); !status)
    return Error{status.error().code, options.program + ": " + status.error().message, status.error().hint};
  run.clock.end("load");
  if (Status status = loadStates(); !status)
    return status;
  run.clock.end("states");
  run.numSteps = stepsToMake();
  if (Status status = layOutSchedule(); !status)
    return status;
  if (Status status = agree(); !status)
    return status;
  run.clock.end("agreement");
  const std::string &path = run.start.weightsPath();
  return path.empty() ? Status() : tellOfLost(std::move(lost), path, team);
}

Status Preparation::openSaves(const Program &program) {
  if (options.save.empty())
    return {};
  Result<std::unique_ptr<Checkpointer>> saves =
      Checkpointer::open(options, program, run.start.checkpoint(), team);
  if (!saves)
    return saves.error();
  run.checkpointer = std::move(*saves);
  return {};
}

Status Preparation::explain() {
  Result<Program> program = open();
  if (!program)
    return program.error();
  if (Status status = run.start.choose(*program); !status)
    return status;
  if (Status status = openFiles(*program); !status)
    return status;
  if (!options.save.empty())
    if (Status status = checkSaveDirectory(options, run.start.checkpoint()); !status)
      return status;
  const Result<std::string> text = run.start.describe(*program);
  if (!text)
    return text.error();
  run.numSteps = stepsToMake();
  if (team.leads())
    std::fputs(text->c_str(), stdout);
  if (const std::string why = spellNothingLeft(); team.leads() && !why.empty())
    std::fputs(("  " + why + "\n").c_str(), stdout);
  return {};
}

Status Preparation::openFiles(const Program &program) {
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
  return run.data.open(program, run.start);
}

/// As many as are asked for, counted from the very first; else once over the data.
uint64_t Preparation::stepsToMake() const {
  if (options.evalOnly)
    return run.start.step();
  if (options.steps)
    return *options.steps;
  const uint64_t consumed = run.data.training().position(run.start.step()),
                 samples = run.data.training().numSamples();
  const uint64_t batch = run.data.training().position(run.start.step() + 1) - consumed;
  return run.start.step() + (samples > consumed ? (samples - consumed) / batch : 0);
}

/// Why a run that is resumed makes no step; empty where it makes some, or none was meant to be made.
std::string Preparation::spellNothingLeft() const {
  const Checkpoint *from = run.start.checkpoint();
  if (!from || options.evalOnly || run.start.step() < run.numSteps)
    return {};
  return fmt::format("nothing is left to do: '{}' is of step {}, and {} {}", from->directory(),
                     run.start.step(), options.steps ? "--steps is" : "the data end after step",
                     run.numSteps);
}

/// Gives a schedule of "auto" length the steps of the run. Where that changes what the checkpoint had, rates
/// change too, and that is said. A run that has nothing left to do changes nothing: its states may be saved.
Status Preparation::layOutSchedule() {
  if (const std::string why = spellNothingLeft(); !why.empty()) {
    if (team.leads())
      logLine(why);
    return {};
  }
  const Result<std::optional<double>> before = totalSteps(*run.executor);
  if (!before)
    return before.error();
  if (run.start.checkpoint() && *before && **before > 0 && **before != static_cast<double>(run.numSteps) &&
      team.leads() && !options.evalOnly)
    logLine(fmt::format(
        "the schedule's length is \"auto\": it was laid out for {:.0f} steps and is now for {}, so "
        "that rates are others from step {} on",
        **before, run.numSteps, run.start.step() + 1));
  return setTotalSteps(*run.executor, run.numSteps);
}

Status Preparation::load(Program program) {
  Result<std::unique_ptr<Executor>> loaded =
      loadExecutor(std::move(program), options, team, run.device.get(), &run.clock);
  if (!loaded)
    return loaded.error();
  run.executor = std::move(*loaded);
  run.targets.emplace(*run.executor, team);
  return {};
}

/// A damaged checkpoint may give way to an older one, and then the data stand elsewhere too.
Status Preparation::loadStates() {
  for (;;) {
    if (Status status = run.start.initialize(*run.executor); !status)
      return status;
    const Result<bool> restored = run.start.restore(*run.executor);
    if (!restored)
      return restored.error();
    if (*restored)
      break;
    if (Status status = run.start.choose(run.executor->whole()); !status)
      return status;
    if (Status status = openFiles(run.executor->whole()); !status)
      return status;
  }
  if (run.checkpointer && run.start.checkpoint())
    run.checkpointer->continuesFrom(*run.start.checkpoint());
  return {};
}

Status Preparation::agreeOn(const Program &program) {
  if (team.world() == 1)
    return {};
  return team.agree({{"the build of ds-run", executableSign()}, {"the program", hashPlan(program)}});
}

/// Nothing is shared before every rank is known to be about to do the same.
Status Preparation::agree() {
  if (team.world() == 1)
    return {};
  Facts facts = {
      {"--seed", std::to_string(run.start.seed())},
      {"the checkpoint", run.start.checkpoint() ? fmt::format("step {}", run.start.step()) : "none"},
      {"--save", options.save.empty() ? "not given" : "given"},
      {"the number of steps", std::to_string(run.numSteps)},
      {"--eval-only", options.evalOnly ? "given" : "not given"},
      {"--eval-every", std::to_string(options.evalEvery)},
      {"the held-out data", spellNames(options.evalData)},
      {"--keep-best", std::to_string(options.keep.best)},
      {"--check-replicas", std::to_string(options.checkReplicas)},
      {"--on-nan, --on-spike and what spikes are", spell(options.loss)},
      {"--save-weights", options.saveWeights.empty() ? "not given" : "given"},
      {"the weights", run.start.weightsSign()}};
  if (Status status = run.data.addFacts(*run.executor, run.start.step(), facts); !status)
    return status;
  return team.agree(facts);
}

} // namespace

Result<std::unique_ptr<Executor>> loadExecutor(Program program, const TrainOptions &options, Team &team,
                                               Device *device, PhaseClock *clock) {
  ExecutorOptions settings;
  settings.rank = team.rank();
  Result<CommunicatorOf> communicator = team.communicatorsFor(program);
  if (!communicator)
    return communicator.error();
  settings.communicator = std::move(*communicator);
  settings.device = device;
  settings.clock = clock;
  settings.storage = {
      options.nvme, options.nvmeParameters, options.verifyStorage,
      [rank = team.rank()](const std::string &line) { logLine(fmt::format("rank {}: {}", rank, line)); }};
  settings.failed = [&ranks = team](const Error &error) { ranks.abort(error); };
  return Executor::load(std::move(program), settings);
}

Status prepareRun(RunParts &run) { return Preparation(run).prepare(); }
Status explainRun(RunParts &run) { return Preparation(run).explain(); }

} // namespace ds::rt
