//===- CheckRun.cpp - What a run refuses before it starts -------------------------===//
#include "CheckRun.h"

#include "OpenDevice.h"
#include "StepOutcome.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace ds::rt {

static Error invalid(std::string message, std::string hint) {
  return Error{ExitCode::Invalid, std::move(message), std::move(hint)};
}

/// What the options about checkpoints ask of each other.
static Status checkCheckpoints(const TrainOptions &options) {
  const auto usage = [](std::string message, std::string hint) {
    return Error{ExitCode::Usage, std::move(message), std::move(hint)};
  };
  if (options.save.empty() && (options.saveEvery > 0 || options.saveSeconds > 0 || options.verifySaves))
    return usage("--save-every, --save-seconds and --verify-saves need --save", "give --save DIR");
  if (options.save.empty() && (options.keep.best > 0 || options.keep.every))
    return usage("--keep-best and --keep-every need --save", "give --save DIR");
  if (options.keep.best > 0 && options.evalData.empty())
    return usage("--keep-best needs --eval-data", "its loss says which states are best");
  if (options.keep.newest < KeepRule::kLeast)
    return usage(fmt::format("--keep {}: two checkpoints are kept at least", options.keep.newest),
                 "the newest one may turn out to be damaged");
  if (options.resume == "auto" && options.save.empty())
    return usage("--resume auto needs --save",
                 "it takes the newest checkpoint of the directory that --save names");
  if (options.resume.empty() && (options.newData || options.dryRun))
    return usage("--new-data and --dry-run need --resume", "give --resume DIR or --resume auto");
  // With auto the weights are for the first start, when there is no checkpoint yet.
  if (!options.resume.empty() && options.resume != "auto" && !options.weights.empty())
    return usage("--resume and --weights name two origins of the weights", "leave one of them out");
  if (!options.resume.empty() && options.resume != "auto" && !options.adapter.empty())
    return usage("--resume and --adapter name two origins of the adapters", "leave one of them out");
  return {};
}

static bool asksFor(const LossRules &rules, LossAction action) {
  return rules.onNan == action || (rules.spikeFactor > 0 && rules.onSpike == action);
}

/// What no program could do; what this one cannot is for checkProgram.
static Status checkLossRules(const TrainOptions &options) {
  if (asksFor(options.loss, LossAction::Rollback) && options.save.empty())
    return Error{ExitCode::Usage,
                 "--on-nan or --on-spike rollback: without --save nothing is there to go back to",
                 "give --save DIR"};
  return {};
}

/// An evaluation alone makes no step, and leaves nothing behind.
static Status checkEvaluation(const TrainOptions &options) {
  if (!options.evalOnly)
    return {};
  const std::pair<const char *, bool> others[] = {
      {"--save", !options.save.empty()},       {"--save-weights", !options.saveWeights.empty()},
      {"--steps", options.steps.has_value()},  {"--shuffle", options.shuffle},
      {"--eval-every", options.evalEvery > 0}, {"--check-replicas", options.checkReplicas > 0},
      {"--new-data", options.newData},         {"--dry-run", options.dryRun},
      {"--trace", !options.trace.empty()}};
  for (const auto &[name, isGiven] : others)
    if (isGiven)
      return Error{ExitCode::Usage, fmt::format("--eval-only and {} do not go together", name),
                   "leave one of them out"};
  return {};
}

Status checkOptions(const TrainOptions &options) {
  if (Status status = checkEvaluation(options); !status)
    return status;
  if (Status status = checkDeviceName(options.device); !status)
    return status;
  if (Status status = checkLossRules(options); !status)
    return status;
  if (Status status = checkCheckpoints(options); !status)
    return status;
  if (options.evalEvery > 0 && options.evalData.empty())
    return invalid("--eval-every needs --eval-data", "give the held-out data with --eval-data FILE");
  return {};
}

Status checkProgram(const Program &program, const TrainOptions &options, uint32_t started) {
  if (program.world != started)
    return invalid(fmt::format("{}: the program was compiled for {} rank{}, but {} {} started",
                               options.program, program.world, program.world == 1 ? "" : "s", started,
                               started == 1 ? "was" : "were"),
                   fmt::format("start {} with --ranks {}, or compile with --ranks {}", program.world,
                               program.world, started));
  if (!options.adapter.empty())
    if (Status status = checkAdapter(program, options.adapter); !status)
      return status;
  const auto gives = [&](const char *name) {
    return std::ranges::any_of(program.outputs, [&](const Output &output) { return output.name == name; });
  };
  if (program.stages.size() > 1 && !gives("loss"))
    return invalid(
        fmt::format("{}: none of its {} stages gives 'loss'", options.program, program.stages.size()),
        "compile a model with a loss");
  if (options.loss.onNan == LossAction::Skip && !gives("skipped"))
    return invalid(fmt::format("{}: --on-nan skip: the program updates its states whatever its gradients are",
                               options.program),
                   "compile with skip_bad_steps, or use --on-nan stop or rollback");
  if (options.loss.spikeFactor > 0 && options.loss.onSpike == LossAction::Skip && !findLossLimit(program))
    return invalid(fmt::format("{}: --on-spike skip: the program updates its states whatever its loss is",
                               options.program),
                   "compile with skip_bad_steps, or use --on-spike stop or rollback");
  if ((!options.evalData.empty() || options.evalOnly) && program.stages.front().evaluation < 0)
    return invalid(fmt::format("{}: {}: the program has no evaluation segment", options.program,
                               options.evalOnly ? "--eval-only" : "--eval-data"),
                   options.evalOnly ? "compile a model with a loss" : "leave --eval-data out");
  return {};
}

Result<std::string> findWeights(const Program &program, const TrainOptions &options) {
  if (options.weights == kFromSeed)
    return std::string();
  if (!options.weights.empty() || program.weightsFile.empty())
    return options.weights;
  const std::filesystem::path file =
      std::filesystem::path(options.program).parent_path() / program.weightsFile;
  std::error_code error;
  if (std::filesystem::exists(file, error))
    return file.string();
  return invalid(fmt::format("{}: the weights that were written with the program are not beside it: '{}'{}",
                             options.program, file.string(), error ? ": " + error.message() : ""),
                 "bring the file there, name it with --weights FILE, or start from initial values with "
                 "--weights none");
}

Status checkBeforeLaunch(const TrainOptions &options) {
  if (Status status = checkOptions(options); !status)
    return status;
  const Result<Program> program = readProgram(options.program);
  if (!program)
    return program.error();
  if (Status status = checkProgram(*program, options, options.ranks); !status)
    return status;
  if (!options.resume.empty())
    return {}; // a checkpoint may have them
  const Result<std::string> weights = findWeights(*program, options);
  return weights ? Status() : Status(weights.error());
}

} // namespace ds::rt
