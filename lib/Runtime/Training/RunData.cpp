//===- RunData.cpp - What a run reads --------------------------------------------------===//
#include "RunData.h"

#include "Evaluation.h"
#include "OpenData.h"
#include "Process/Messages.h"
#include "Program/Shape.h"
#include "StartUp.h"

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

std::vector<void *> destinationsOf(const Executor &executor, uint32_t microBatch) {
  std::vector<void *> own = executor.inputs(microBatch);
  if (executor.whole().stages.size() == 1)
    return own;
  std::vector<void *> all;
  const std::vector<Input> &inputs = executor.program().inputs;
  for (const InputSpec &spec : inputSpecs(executor.whole())) {
    const auto found = std::ranges::find(inputs, spec.name, &Input::name);
    all.push_back(found == inputs.end() ? nullptr : own[static_cast<size_t>(found - inputs.begin())]);
  }
  return all;
}

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
  return data->fill(batch, microBatch, dataPositionOf(executor), destinationsOf(executor, microBatch));
}

/// Of the inputs of all stages: what this rank has no place for is read into memory for that.
Result<std::string> RunData::signOf(DataSource &source, uint64_t batch, const Executor &executor) const {
  const std::vector<InputSpec> specs = inputSpecs(executor.whole());
  std::vector<void *> inputs = destinationsOf(executor, 0);
  std::vector<uint64_t> bytes;
  for (const InputSpec &spec : specs)
    bytes.push_back(elementsOf(spec.shape) * byteSize(spec.dtype));
  std::vector<std::vector<std::byte>> others(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i]) {
      others[i].resize(bytes[i]);
      inputs[i] = others[i].data();
    }
  if (Status status = source.fill(batch, 0, /*rank=*/0, inputs); !status)
    return status.error();
  uint64_t sign = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    sign = addToSign(sign, {static_cast<const std::byte *>(inputs[i]), bytes[i]});
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
