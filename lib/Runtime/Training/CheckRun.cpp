//===- CheckRun.cpp - What a run refuses before it starts -------------------------===//
#include "CheckRun.h"

#include "OpenDevice.h"

#include <fmt/format.h>

namespace ds::rt {

static Error invalid(std::string message, std::string hint) {
  return Error{ExitCode::Invalid, std::move(message), std::move(hint)};
}

Status checkOptions(const TrainOptions &options) {
  if (Status status = checkDeviceName(options.device); !status)
    return status;
  if (!options.save.empty())
    return invalid("--save: checkpoints are not supported yet", "use --save-weights FILE.safetensors");
  if (!options.resume.empty())
    return invalid("--resume: checkpoints are not supported yet", "use --weights FILE.safetensors");
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
  if (program.stages.size() > 1)
    return invalid(fmt::format("{}: the program has {} stages, but this ds-run trains programs of one",
                               options.program, program.stages.size()),
                   "compile the model without a pipeline");
  if (!options.evalData.empty() && program.stages.front().evaluation < 0)
    return invalid(fmt::format("{}: --eval-data: the program has no evaluation segment", options.program),
                   "leave --eval-data out");
  return {};
}

} // namespace ds::rt
