//===- OpenData.cpp - The data that a run reads ---------------------------------------===//

#include "OpenData.h"

#include "Comm/Control/Limits.h"
#include "StepOutcome.h"

#include "ds/Runtime/Data/DataFiles.h"
#include "ds/Runtime/Program/Groups.h"

#include <fmt/format.h>

namespace ds::rt {

/// One file is among what every rank has reserved. Many are asked for before any is opened, and so is what
/// the run will open after them.
static Status reserveFiles(const std::string &path, const Program &program) {
  const size_t files = listDataFiles(path).size();
  if (files <= 2)
    return {};
  const Status status =
      reserveDescriptors(files + descriptorsOfRank(program.world, numChannels(program), /*gloo=*/true),
                         fmt::format("data of '{}'", path));
  return status ? Status()
                : Error{status.error().code, status.error().message,
                        "raise the limit with `ulimit -n`, or join the files into fewer"};
}

static Result<DataOptions> commonOptions(const std::string &path, const TrainOptions &options,
                                         const Program &program) {
  if (Status status = reserveFiles(path, program); !status)
    return status.error();
  DataOptions data;
  data.path = path;
  if (!options.tokenDtype.empty()) {
    data.tokenWidth = parseTokenWidth(options.tokenDtype);
    if (!data.tokenWidth)
      return Error{ExitCode::Usage,
                   fmt::format("--token-dtype {}: known are u16 and u32", options.tokenDtype), ""};
  }
  data.microBatch = program.microBatch;
  data.world = program.mesh.size(program.dataAxes);
  data.documentToken = options.documentToken;
  data.resetPositions = options.resetPositions;
  data.resetAttention = options.resetAttention;
  return data;
}

/// Opens data for the inputs of `program`, of which one may have the targets of its loss.
static Result<DataSource> openFor(const Program &program, const DataOptions &options) {
  std::vector<InputSpec> specs = inputSpecs(program);
  const auto hasTargets = [](const InputSpec &spec) { return !spec.targets.empty(); };
  if (findMeanTargets(program) && std::ranges::none_of(specs, hasTargets))
    return Error{
        ExitCode::Invalid,
        "the program divides its losses by the number of targets of a step, but which elements of its "
        "inputs are targets is not known",
        "compile it with \"loss_normalization\": \"micro_batches\""};
  return DataSource::open(options, std::move(specs));
}

Result<DataSource> openTrainingData(const TrainOptions &options, const Program &program, uint64_t seed,
                                    const Manifest *resumed, std::function<void(std::string)> notice) {
  Result<DataOptions> data = commonOptions(options.data, options, program);
  if (!data)
    return data.error();
  data->accumulation = program.accumulation;
  data->shuffle = options.shuffle;
  data->seed = seed;
  data->notice = std::move(notice);
  if (!resumed)
    return openFor(program, *data);
  data->firstStep = resumed->step;
  if (!options.newData) {
    data->firstSample = resumed->data.samples;
    data->shuffle |= resumed->data.shuffle;
  }
  Result<DataSource> source = openFor(program, *data);
  const std::string &sign = resumed->data.sign;
  if (!source || options.newData || sign.empty() || source->sign() == sign)
    return source;
  return Error{
      ExitCode::Invalid,
      fmt::format("--resume: the data are not those that the checkpoint was trained on: {}, but it says {}",
                  source->sign(), sign),
      "give the same data and order, or --new-data to begin with others at their start"};
}

Result<DataSource> openHeldOutData(const std::string &path, const TrainOptions &options,
                                   const Program &program) {
  Result<DataOptions> data = commonOptions(path, options, program);
  if (!data)
    return data.error();
  data->accumulation = 1;
  return openFor(program, *data);
}

} // namespace ds::rt
