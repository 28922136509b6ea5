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
  for (const EvalData &which : options.evalData)
    if (Status status = openHeldOut(which, program); !status)
      return status;
  if (options.evalOnly)
    return held.empty() ? openHeldOut({"", options.data}, program) : Status();
  const Checkpoint *checkpoint = start.checkpoint();
  std::function<void(std::string)> notice;
  if (team.leads())
    notice = logLine;
  Result<DataSource> source = openTrainingData(
      options, program, start.seed(), checkpoint ? &checkpoint->manifest() : nullptr, std::move(notice));
  if (!source)
    return source.error();
  data.emplace(std::move(*source));
  return {};
}

Status RunData::openHeldOut(const EvalData &which, const Program &program) {
  Result<DataSource> source = openHeldOutData(which.data, options, program);
  if (!source)
    return source.error();
  held.push_back({which.name, std::move(*source)});
  return checkHeldOut(held.back().source, program.mesh.size(program.dataAxes));
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
  const auto add = [&](std::string name, DataSource &source, uint64_t batch) -> Status {
    Result<std::string> sign = signOf(source, batch, executor);
    if (!sign)
      return sign.error();
    facts.emplace_back(std::move(name), *sign);
    return {};
  };
  if (data)
    if (Status status = add("the data", *data, step); !status)
      return status;
  for (HeldOut &each : held)
    if (Status status = add("the held-out data" + (each.name.empty() ? "" : " " + each.name), each.source, 0);
        !status)
      return status;
  return {};
}

} // namespace ds::rt
