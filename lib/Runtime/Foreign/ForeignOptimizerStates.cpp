//===- ForeignOptimizerStates.cpp - DeepSpeed's *_optim_states.pt ---------------===//

#include "ForeignStates.h"

#include "Files/Text.h"

#include <cmath>
#include <cstring>

using namespace ds;
using namespace ds::rt;

std::optional<int64_t> ds::rt::readCount(const PickleValue &value, const TorchFile &file) {
  double number = 0;
  if (std::optional<int64_t> count = value.asInt())
    return count;
  if (std::optional<double> count = value.asNumber()) {
    number = *count;
  } else if (std::optional<PickleTensor> tensor = value.asTensor(); tensor && tensor->numElements() == 1) {
    std::byte bytes[8] = {};
    if (!file.read(*tensor, 0, 1, bytes))
      return std::nullopt;
    int64_t whole;
    float single;
    memcpy(&whole, bytes, sizeof(whole)), memcpy(&single, bytes, sizeof(single));
    if (tensor->dtype == FileDType::I64)
      return whole;
    if (tensor->dtype == FileDType::I32)
      return int32_t(whole);
    if (tensor->dtype != FileDType::F32)
      return std::nullopt;
    number = double(single);
  } else {
    return std::nullopt;
  }
  if (!(std::fabs(number) < 0x1p53) || number != std::floor(number))
    return std::nullopt;
  return int64_t(number);
}

void ds::rt::readLossScale(const PickleValue &optimizer, ForeignView &view) {
  std::optional<PickleValue> scaler = optimizer.find("loss_scaler");
  std::optional<PickleValue> attributes = scaler ? scaler->state() : std::nullopt;
  if (!attributes || !attributes->isMap())
    return;
  ForeignLossScale scale;
  bool isKnown = false;
  for (size_t i = 0; i < attributes->size(); ++i) {
    std::optional<std::string_view> name = attributes->key(i).asText();
    std::optional<double> number = attributes->value(i).asNumber();
    if (std::optional<bool> flag = attributes->value(i).asBool())
      number = *flag ? 1 : 0;
    if (!name || !number)
      continue;
    if (*name == "cur_scale")
      scale.scale = *number, isKnown = true;
    scale.numbers.push_back({std::string(*name), *number});
  }
  std::optional<PickleValue> dynamic = optimizer.find("dynamic_loss_scale");
  scale.isDynamic = dynamic ? dynamic->asBool().value_or(false) : false;
  if (isKnown)
    view.lossScale = std::move(scale);
}

namespace {

/// One optimizer file while it is read.
class OptimizerReader {
public:
  OptimizerReader(ForeignView &view, const TorchFile &file, uint32_t number, OptimizerStates &states)
      : view(view), file(file), number(number), states(states), optimizer(file.root()) {}

  Status findOptimizer();
  Status readGroups();
  Status readSlots(bool isFirst);

private:
  Error corrupt(const std::string &what) const { return foreignCorrupt(file.path(), what); }
  std::optional<PickleValue> slotsOf(size_t group) const;
  Status readSlot(size_t group, std::string_view name, const PickleValue &value);

  ForeignView &view;
  const TorchFile &file;
  uint32_t number;
  OptimizerStates &states;
  PickleValue optimizer;
};

} // namespace

/// The number of a stage: an integer, or a member of DeepSpeed's enumeration. That is a call of the class
/// with the number, or from Python 3.11 on of getattr with the class and the member's name.
static std::optional<int64_t> stageOf(const PickleValue &value) {
  constexpr std::string_view kClass = "deepspeed.runtime.zero.config.ZeroStageEnum";
  static constexpr std::string_view kMembers[] = {"disabled", "optimizer_states", "gradients", "weights"};
  std::optional<PickleValue> arguments = value.arguments();
  if (!arguments || arguments->kind() != PickleKind::Tuple || arguments->size() == 0)
    return value.asInt();
  if (value.typeName() == kClass)
    return (*arguments)[0].asInt();
  bool isGetattr = value.typeName() == "builtins.getattr" || value.typeName() == "__builtin__.getattr";
  if (!isGetattr || arguments->size() != 2 || (*arguments)[0].typeName() != kClass)
    return std::nullopt;
  for (size_t i = 0; i < std::size(kMembers); ++i)
    if ((*arguments)[1].asText() == kMembers[i])
      return int64_t(i);
  return std::nullopt;
}

Status OptimizerReader::findOptimizer() {
  std::optional<PickleValue> found = optimizer.find("optimizer_state_dict");
  if (!found || !found->isMap())
    return corrupt("expects a dict 'optimizer_state_dict', but got " + (found ? found->describe() : "none"));
  optimizer = *found;
  // DeepSpeed's bf16 optimizer does not say that it cuts as stage 1 does.
  std::optional<PickleValue> stage = optimizer.find("zero_stage");
  states.stage = stage ? stageOf(*stage).value_or(0) : 1;
  if (states.stage < 1 || states.stage > 3)
    return corrupt("expects 'zero_stage' 1 to 3, but got " + stage->describe());
  std::optional<PickleValue> count = optimizer.find("partition_count");
  if (!count)
    return corrupt("has no 'partition_count'");
  // Groups may have counts of their own; the files are as many as the largest says.
  states.numRanks = count->asInt().value_or(0);
  for (size_t i = 0; !count->isMap() && i < count->size(); ++i)
    states.numRanks = std::max(states.numRanks, (*count)[i].asInt().value_or(0));
  if (states.numRanks < 1)
    return corrupt("expects a number of ranks as 'partition_count', but got " + count->describe());
  return {};
}

Status OptimizerReader::readGroups() {
  const char *key = states.stage == 3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups";
  std::optional<PickleValue> groups = optimizer.find(key);
  if (!groups || groups->isMap() || groups->size() == 0)
    return corrupt("expects a list of tensors as '" + std::string(key) + "', but got " +
                   (groups ? groups->describe() : "none"));
  for (size_t i = 0; i < groups->size(); ++i) {
    std::optional<PickleTensor> tensor = (*groups)[i].asTensor();
    if (!tensor || tensor->shape.size() != 1)
      return corrupt("expects flat tensors in '" + std::string(key) + "', but got " +
                     (*groups)[i].describe());
    uint64_t count = tensor->numElements();
    Result<uint32_t> source = view.addSource(number, file.path(), std::move(*tensor));
    if (!source)
      return source.error();
    states.groups.push_back({{*source, count}, {}});
  }
  return {};
}

/// The optimizer's own state of a flat group: {"exp_avg": ..., "exp_avg_sq": ..., "step": ...}.
std::optional<PickleValue> OptimizerReader::slotsOf(size_t group) const {
  std::optional<PickleValue> base =
      optimizer.find(states.stage == 3 ? "optimizer_state_dict" : "base_optimizer_state");
  if (!base)
    return std::nullopt;
  if (!base->isMap()) // an "elastic" checkpoint: a list by group
    return group < base->size() ? std::optional((*base)[group]) : std::nullopt;
  std::optional<PickleValue> all = base->find("state");
  for (size_t i = 0; all && all->isMap() && i < all->size(); ++i)
    if (all->key(i).asInt() == int64_t(group))
      return all->value(i);
  return std::nullopt;
}

Status OptimizerReader::readSlot(size_t group, std::string_view name, const PickleValue &value) {
  std::optional<PickleTensor> tensor = value.asTensor();
  if (!tensor || tensor->shape.empty())
    return {}; // counts, and numbers that are none of a parameter's
  FlatGroup &flat = states.groups[group];
  // Where the values are without the padding at the end, the states may still have it.
  uint64_t needed = flat.value.numElements, count = tensor->numElements();
  if (tensor->shape.size() != 1 || count < needed || (states.stage == 3 && count != needed))
    return foreignInvalid(file.path(),
                          "optimizer state " + quote(name) + " of group " + std::to_string(group) +
                              " has shape " + spellShape(tensor->shape) + ", but the group has " +
                              std::to_string(needed) + " elements here",
                          "states that keep parameters whole (Muon's) are not read");
  Result<uint32_t> source = view.addSource(number, file.path(), std::move(*tensor));
  if (!source)
    return source.error();
  flat.slots[std::string(name)] = {*source, needed};
  return {};
}

Status OptimizerReader::readSlots(bool isFirst) {
  for (size_t group = 0; group < states.groups.size(); ++group) {
    std::optional<PickleValue> slots = slotsOf(group);
    for (size_t i = 0; slots && slots->isMap() && i < slots->size(); ++i) {
      std::optional<std::string_view> name = slots->key(i).asText();
      if (!name)
        return corrupt("expects the name of an optimizer state, but got " + slots->key(i).describe());
      if (*name == "step" && isFirst && !view.progress.optimizerSteps)
        view.progress.optimizerSteps = readCount(slots->value(i), file);
      if (*name == "step")
        continue;
      if (*name == "value")
        return corrupt("has an optimizer state 'value'");
      if (Status status = readSlot(group, *name, slots->value(i)); !status)
        return status;
    }
  }
  if (isFirst)
    readLossScale(optimizer, view);
  return {};
}

Result<OptimizerStates> ds::rt::readOptimizerStates(ForeignView &view, const std::string &name,
                                                    bool isFirst) {
  uint32_t number = 0;
  Result<TorchFiles::File> file = view.files.add(view.folder, name, number);
  if (!file)
    return file.error();
  OptimizerStates states;
  OptimizerReader reader(view, **file, number, states);
  if (Status status = reader.findOptimizer(); !status)
    return status.error();
  if (Status status = reader.readGroups(); !status)
    return status.error();
  if (Status status = reader.readSlots(isFirst); !status)
    return status.error();
  return states;
}
