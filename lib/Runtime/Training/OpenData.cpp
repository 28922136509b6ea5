//===- OpenData.cpp - The data that a run reads ---------------------------------------===//

#include "OpenData.h"

#include <fmt/format.h>

namespace ds::rt {

static Result<DataOptions> commonOptions(const TrainOptions &options, const Program &program) {
  DataOptions data;
  if (!options.tokenDtype.empty()) {
    data.tokenWidth = parseTokenWidth(options.tokenDtype);
    if (!data.tokenWidth)
      return Error{ExitCode::Usage,
                   fmt::format("--token-dtype {}: known are u16 and u32", options.tokenDtype), ""};
  }
  data.microBatch = program.microBatch;
  data.world = program.mesh.size(program.dataAxes);
  return data;
}

Result<DataSource> openTrainingData(const TrainOptions &options, const Program &program, uint64_t seed,
                                    const Manifest *resumed, std::function<void(std::string)> notice) {
  Result<DataOptions> data = commonOptions(options, program);
  if (!data)
    return data.error();
  data->path = options.data;
  data->accumulation = program.accumulation;
  data->shuffle = options.shuffle;
  data->seed = seed;
  data->notice = std::move(notice);
  if (!resumed)
    return DataSource::open(*data, inputSpecs(program));
  data->firstStep = resumed->step;
  if (!options.newData) {
    data->firstSample = resumed->data.samples;
    data->shuffle |= resumed->data.shuffle;
  }
  Result<DataSource> source = DataSource::open(*data, inputSpecs(program));
  const std::string &sign = resumed->data.sign;
  if (!source || options.newData || sign.empty() || source->sign() == sign)
    return source;
  return Error{
      ExitCode::Invalid,
      fmt::format("--resume: the data are not those that the checkpoint was trained on: {}, but it says {}",
                  source->sign(), sign),
      "give the same data and order, or --new-data to begin with others at their start"};
}

Result<DataSource> openHeldOutData(const TrainOptions &options, const Program &program) {
  Result<DataOptions> data = commonOptions(options, program);
  if (!data)
    return data.error();
  data->path = options.evalData;
  data->accumulation = 1;
  return DataSource::open(*data, inputSpecs(program));
}

} // namespace ds::rt
