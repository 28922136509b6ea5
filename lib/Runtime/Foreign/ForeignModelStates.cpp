//===- ForeignModelStates.cpp - DeepSpeed's *_model_states.pt -------------------===//

#include "ForeignStates.h"

#include "Files/Text.h"

#include <algorithm>
#include <set>

using namespace ds;
using namespace ds::rt;

Status ds::rt::readShape(const PickleValue &value, const std::string &path, ForeignShape &shape) {
  bool isRight = value.kind() == PickleKind::Tuple || value.kind() == PickleKind::List;
  for (size_t i = 0; isRight && i < value.size(); ++i) {
    std::optional<int64_t> dim = value[i].asInt();
    isRight = dim && *dim >= 0 && i < kMaxPickleRank;
    shape.dims.push_back(dim.value_or(0));
  }
  int64_t count = 1;
  bool isEmpty = std::find(shape.dims.begin(), shape.dims.end(), 0) != shape.dims.end();
  if (!isRight || (!isEmpty && !checkedProduct(shape.dims, count)))
    return foreignCorrupt(path, "expects a shape for parameter " + quote(shape.name) + ", but got " +
                                    value.describe());
  shape.numElements = isEmpty ? 0 : uint64_t(count);
  return {};
}

namespace {

/// One model file while it is read.
class ModelReader {
public:
  ModelReader(ForeignView &view, const TorchFile &file, uint32_t number, ModelStates &states)
      : view(view), file(file), number(number), states(states), root(file.root()) {}

  Status check();
  Status readShapes();
  Status readFrozen();
  Status readBuffers();
  Status readTied();
  void readProgress();
  void readScheduler();
  void readOptimizer();

private:
  /// What the file calls `name`; absent is None.
  std::optional<PickleValue> get(std::string_view name) const {
    std::optional<PickleValue> value = root.find(name);
    return value && !value->isNone() ? value : std::nullopt;
  }
  Status readNamedShapes(const PickleValue &value, ForeignShapes &out);
  void addAliases(const PickleValue &module);
  void setCount(std::optional<int64_t> &count, const PickleValue &owner, std::string_view name);
  std::set<std::string, std::less<>> namesOf(std::string_view name) const;

  ForeignView &view;
  const TorchFile &file;
  uint32_t number;
  ModelStates &states;
  PickleValue root;
};

} // namespace

Status ModelReader::check() {
  if (!root.isMap())
    return foreignCorrupt(file.path(), "expects a dict, but got " + root.describe());
  for (const char *experts : {"ds_autoep_layers", "autoep_layers"})
    if (get(experts))
      return foreignInvalid(file.path(),
                            "has experts that are spread over ranks (" + std::string(experts) + ")",
                            "convert the checkpoint with DeepSpeed's ds_to_universal.py");
  std::optional<PickleValue> ranks = get("mp_world_size");
  if (ranks && view.format != ForeignFormat::Universal && ranks->asInt().value_or(1) > 1)
    return foreignInvalid(file.path(),
                          "is one of " + std::to_string(*ranks->asInt()) + " tensor parallel ranks",
                          "convert the checkpoint with DeepSpeed's ds_to_universal.py");
  return {};
}

/// Adds the names and shapes of a dict.
Status ModelReader::readNamedShapes(const PickleValue &value, ForeignShapes &out) {
  if (!value.isMap())
    return foreignCorrupt(file.path(), "expects a dict of shapes, but got " + value.describe());
  for (size_t i = 0; i < value.size(); ++i) {
    std::optional<std::string_view> name = value.key(i).asText();
    if (!name)
      return foreignCorrupt(file.path(), "expects a parameter's name, but got " + value.key(i).describe());
    ForeignShape shape;
    shape.name = *name;
    if (Status status = readShape(value.value(i), file.path(), shape); !status)
      return status;
    out.push_back(std::move(shape));
  }
  return {};
}

Status ModelReader::readShapes() {
  std::optional<PickleValue> shapes = get("param_shapes");
  if (!shapes)
    return {};
  if (shapes->isMap())
    return readNamedShapes(*shapes, states.groups.emplace_back());
  for (size_t i = 0; i < shapes->size(); ++i)
    if (Status status = readNamedShapes((*shapes)[i], states.groups.emplace_back()); !status)
      return status;
  return {};
}

Status ModelReader::readFrozen() {
  std::optional<PickleValue> shapes = get("frozen_param_shapes"), parts = get("frozen_param_fragments");
  if (!shapes)
    return {};
  if (Status status = readNamedShapes(*shapes, states.frozen); !status)
    return status;
  for (size_t i = 0; parts && parts->isMap() && i < parts->size(); ++i) {
    std::optional<std::string_view> name = parts->key(i).asText();
    std::optional<PickleTensor> part = parts->value(i).asTensor();
    if (!name || !part)
      return foreignCorrupt(file.path(),
                            "expects a frozen parameter's tensor, but got " + parts->value(i).describe());
    Result<uint32_t> source = view.addSource(number, file.path(), std::move(*part));
    if (!source)
      return source.error();
    states.frozenParts[std::string(*name)] = *source;
  }
  return {};
}

/// A list or set of names.
std::set<std::string, std::less<>> ModelReader::namesOf(std::string_view name) const {
  std::set<std::string, std::less<>> names;
  std::optional<PickleValue> list = get(name);
  for (size_t i = 0; list && !list->isMap() && i < list->size(); ++i)
    if (std::optional<std::string_view> text = (*list)[i].asText())
      names.emplace(*text);
  return names;
}

Status ModelReader::readBuffers() {
  std::set<std::string, std::less<>> names = namesOf("buffer_names");
  std::optional<PickleValue> module = get("module");
  for (size_t i = 0; module && module->isMap() && i < module->size(); ++i) {
    std::optional<std::string_view> name = module->key(i).asText();
    if (!name || !names.contains(*name))
      continue;
    std::optional<PickleTensor> tensor = module->value(i).asTensor();
    if (!tensor)
      return foreignCorrupt(file.path(), "expects a tensor for buffer " + quote(*name) + ", but got " +
                                             module->value(i).describe());
    Result<uint32_t> source = view.addSource(number, file.path(), std::move(*tensor));
    if (!source)
      return source.error();
    states.buffers.emplace_back(*name, *source);
  }
  return {};
}

/// Parameters of the module that the optimizer does not name are another one's: the one whose elements they
/// share. So it was before DeepSpeed listed them.
void ModelReader::addAliases(const PickleValue &module) {
  std::set<std::string_view> known;
  for (const ForeignShapes &group : states.groups)
    for (const ForeignShape &shape : group)
      known.insert(shape.name);
  for (const ForeignShape &shape : states.frozen)
    known.insert(shape.name);
  std::map<std::pair<std::string, uint64_t>, std::string_view> owners; // first element to name
  for (bool isOwner : {true, false})
    for (size_t i = 0; i < module.size(); ++i) {
      std::optional<std::string_view> name = module.key(i).asText();
      std::optional<PickleTensor> tensor = module.value(i).asTensor();
      if (!name || !tensor || tensor->numElements() == 0 || known.contains(*name) != isOwner)
        continue;
      std::pair place(tensor->storage, tensor->offset);
      if (isOwner)
        owners.try_emplace(place, *name);
      else if (auto owner = owners.find(place); owner != owners.end())
        states.tied.emplace_back(*name, owner->second);
    }
}

Status ModelReader::readTied() {
  std::optional<PickleValue> shared = get("shared_params"), module = get("module");
  if (!shared && module && module->isMap())
    addAliases(*module);
  for (size_t i = 0; shared && shared->isMap() && i < shared->size(); ++i) {
    std::optional<std::string_view> alias = shared->key(i).asText(), name = shared->value(i).asText();
    if (!alias || !name)
      return foreignCorrupt(file.path(),
                            "expects names of shared parameters, but got " + shared->value(i).describe());
    states.tied.emplace_back(*alias, *name);
  }
  return {};
}

void ModelReader::setCount(std::optional<int64_t> &count, const PickleValue &owner, std::string_view name) {
  std::optional<PickleValue> value = owner.find(name);
  if (std::optional<int64_t> number = value ? readCount(*value, file) : std::nullopt; number && *number >= 0)
    count = number;
}

void ModelReader::readProgress() {
  ForeignProgress &progress = view.progress;
  setCount(progress.steps, root, "global_steps");
  setCount(progress.skippedSteps, root, "skipped_steps");
  setCount(progress.samples, root, "global_samples");
  // Megatron keeps its own counts, in the file or among its arguments.
  if (std::optional<PickleValue> arguments = get("args")) {
    setCount(progress.samples, *arguments, "consumed_train_samples");
    setCount(progress.tokens, *arguments, "consumed_train_tokens");
  }
  setCount(progress.tokens, root, "consumed_train_tokens");
}

void ModelReader::readScheduler() {
  constexpr size_t kMostNumbers = 1000; // a schedule of more is none
  std::optional<PickleValue> state = get("lr_scheduler");
  if (!state)
    return;
  const PickleValue &pairs = state->isMap() ? *state : state->state().value_or(*state);
  for (size_t i = 0; pairs.isMap() && i < pairs.size() && view.scheduler.size() < kMostNumbers; ++i) {
    std::optional<std::string_view> name = pairs.key(i).asText();
    PickleValue value = pairs.value(i);
    if (name && value.asNumber())
      view.scheduler.push_back({std::string(*name), *value.asNumber()});
    if (!name || value.isMap())
      continue;
    for (size_t k = 0; k < value.size() && view.scheduler.size() < kMostNumbers; ++k)
      if (std::optional<double> number = value[k].asNumber())
        view.scheduler.push_back({std::string(*name) + "[" + std::to_string(k) + "]", *number});
  }
}

/// The type that the configuration names. It may be a path, or an object of a class of DeepSpeed's.
void ModelReader::readOptimizer() {
  constexpr size_t kLongest = 64;
  std::optional<PickleValue> value = get("ds_config");
  for (const char *key : {"optimizer", "type"})
    value = value ? value->find(key) : std::nullopt;
  const std::string_view name = value ? value->asText().value_or("") : "";
  const auto isPlain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.size() <= kLongest && std::all_of(name.begin(), name.end(), isPlain))
    view.optimizer = name;
}

Result<ModelStates> ds::rt::readModelStates(ForeignView &view, const std::string &name, bool isFirst) {
  uint32_t number = 0;
  Result<TorchFiles::File> file = view.files.add(view.folder, name, number);
  if (!file)
    return file.error();
  ModelStates states;
  ModelReader reader(view, **file, number, states);
  for (auto read : {&ModelReader::check, &ModelReader::readShapes, &ModelReader::readFrozen})
    if (Status status = (reader.*read)(); !status)
      return status.error();
  if (!isFirst)
    return states;
  for (auto read : {&ModelReader::readBuffers, &ModelReader::readTied})
    if (Status status = (reader.*read)(); !status)
      return status.error();
  reader.readProgress();
  reader.readScheduler();
  reader.readOptimizer();
  return states;
}
