//===- RunData.cpp - What a run reads --------------------------------------------------===//
#include "RunData.h"

#include "Evaluation.h"
#include "OpenData.h"
#include "Process/Messages.h"
#include "StartUp.h"

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

namespace ds::rt {

Status RunData::open(const Program &program, const RunStart &start) {
  if (options.evalOnly)
    return openHeldOut(program);
  const Checkpoint *checkpoint = start.checkpoint();
  std::function<void(std::string)> notice;
  if (team.leads())
    notice = logLine;
  Result<DataSource> source = openTrainingData(
      options, program, start.seed(), checkpoint ? &checkpoint->manifest() : nullptr, std::move(notice));
  if (!source)
    return source.error();
  data.emplace(std::move(*source));
  return options.evalData.empty() ? Status() : openHeldOut(program);
}

Status RunData::openHeldOut(const Program &program) {
  Result<DataSource> source = openHeldOutData(options, program);
  if (!source)
    return source.error();
  held.emplace(std::move(*source));
  return checkHeldOut(*held, program.mesh.size(program.dataAxes));
}

Status RunData::fill(Executor &executor, uint64_t batch, uint32_t microBatch) {
  const StorageOperation reading("reading", options.data);
  return data->fill(batch, microBatch, executor.dataPosition(), executor.inputs(microBatch));
}

Result<std::string> RunData::signOf(DataSource &source, uint64_t batch, const Executor &executor) const {
  const std::vector<void *> inputs = executor.inputs();
  if (Status status = source.fill(batch, 0, /*rank=*/0, inputs); !status)
    return status.error();
  uint64_t sign = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Buffer &buffer = executor.program().buffers[executor.program().inputs[i].buffer];
    sign = addToSign(sign, {static_cast<const std::byte *>(inputs[i]), extentBytes(buffer)});
  }
  return fmt::format("{}, the first batch of digest {:016x}", source.sign(), sign);
}

Status RunData::addFacts(const Executor &executor, uint64_t step, Facts &facts) {
  for (auto [name, source, batch] :
       {std::tuple("the data", &data, step), {"the held-out data", &held, uint64_t(0)}}) {
    Result<std::string> sign =
        *source ? signOf(**source, batch, executor) : Result<std::string>(std::string("none"));
    if (!sign)
      return sign.error();
    facts.emplace_back(name, *sign);
  }
  return {};
}

} // namespace ds::rt
