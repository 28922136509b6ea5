//===- RunStart.cpp - Where a run begins ----------------------------------------------===//
#include "RunStart.h"

#include "CheckRun.h"
#include "StartUp.h"

#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>

namespace ds::rt {

Status RunStart::choose(const Program &program) {
  if (!options.resume.empty())
    if (Status status = resume.choose(program); !status)
      return status;
  seedOfRun = options.seed.value_or(0);
  firstStep = tokensBefore = 0;
  if (const Checkpoint *from = checkpoint()) {
    const Manifest &manifest = from->manifest();
    if (options.seed && *options.seed != manifest.seed)
      return Error{
          ExitCode::Usage,
          fmt::format("--seed {}: the checkpoint was made with seed {}", *options.seed, manifest.seed),
          "leave --seed out: a run resumes with the numbers that it began with"};
    seedOfRun = manifest.seed;
    firstStep = manifest.step;
    tokensBefore = manifest.data.tokens;
  }
  const Result<std::string> file =
      checkpoint() ? Result<std::string>(std::string()) : findWeights(program, options);
  if (!file)
    return file.error();
  path = *file;
  return {};
}

std::string RunStart::weightsSign() const { return path.empty() ? "none but the seed" : fileSign(path); }

Status RunStart::initialize(Executor &executor) {
  origin = path.empty() ? fmt::format("seed {}", seedOfRun) : fmt::format("'{}'", path);
  return initializeStates(executor, seedOfRun, /*alsoRequired=*/!path.empty() || checkpoint(),
                          resume.restored(executor.program()));
}

Status RunStart::beginAnew(Executor &executor) {
  if (Status status = initialize(executor); !status)
    return status;
  return path.empty() ? Status() : loadWeights(executor, path);
}

Result<bool> RunStart::restore(Executor &executor) {
  if (checkpoint()) {
    origin = fmt::format("checkpoint '{}'", checkpoint()->directory());
    return resume.restore(executor);
  }
  Status status = path.empty() ? Status() : loadWeights(executor, path);
  return status ? Result<bool>(true) : status.error();
}

} // namespace ds::rt
