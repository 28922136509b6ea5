//===- RunStart.cpp - Where a run begins ----------------------------------------------===//
#include "RunStart.h"

#include "CheckRun.h"
#include "StartUp.h"

#include "ds/Runtime/State/Weights.h"
#include "ds/Support/Adapters.h"

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

std::string RunStart::weightsSign() const {
  const std::string sign = path.empty() ? "none but the seed" : fileSign(path);
  return adapter().empty() ? sign : sign + " and " + fileSign(adapter() + "/" + kAdapterWeightsFile);
}

const std::string &RunStart::adapter() const {
  static const std::string kNone;
  return checkpoint() ? kNone : options.adapter;
}

Status RunStart::load(Executor &executor) {
  if (!path.empty())
    if (Status status = loadWeights(executor, path); !status)
      return status;
  return adapter().empty() ? Status() : loadAdapter(executor, adapter());
}

Status RunStart::initialize(Executor &executor) {
  origin = path.empty() ? fmt::format("seed {}", seedOfRun) : fmt::format("'{}'", path);
  if (!adapter().empty())
    origin += fmt::format(" and '{}'", adapter());
  return initializeStates(executor, seedOfRun, /*alsoRequired=*/!path.empty() || checkpoint(),
                          resume.restored(executor.program()));
}

Status RunStart::beginAnew(Executor &executor) {
  if (Status status = initialize(executor); !status)
    return status;
  return load(executor);
}

Result<bool> RunStart::restore(Executor &executor) {
  if (checkpoint()) {
    origin = fmt::format("checkpoint '{}'", checkpoint()->directory());
    return resume.restore(executor);
  }
  Status status = load(executor);
  return status ? Result<bool>(true) : status.error();
}

} // namespace ds::rt
