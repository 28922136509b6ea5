//===- ForeignUniversal.cpp - DeepSpeed's universal checkpoints -----------------===//
//
// zero/<parameter>/<state>.pt holds each tensor whole: a dict with "param" and notes, or, converted from
// ZeRO 3, the flat tensor alone. Names and shapes of what is flat, and how far the training is, stand in a
// model file beside it.
//
//===---------------------------------------------------------------------------===//

#include "ForeignStates.h"

#include "Files/Text.h"

#include <algorithm>
#include <set>

#include <sys/stat.h>

using namespace ds;
using namespace ds::rt;

namespace {

/// What a model file says of parameters, by name.
struct UniversalModel {
  std::map<std::string, ForeignShape, std::less<>> shapes;
  std::set<std::string, std::less<>> buffers, frozen;
};

} // namespace

/// "cat_dim" and the like: numbers and truth values beside the tensor.
static std::vector<NamedNumber> notesOf(const PickleValue &file) {
  constexpr size_t kMostNotes = 100;
  std::vector<NamedNumber> notes;
  for (size_t i = 0; file.isMap() && i < file.size() && notes.size() < kMostNotes; ++i) {
    std::optional<std::string_view> name = file.key(i).asText();
    std::optional<double> number = file.value(i).asNumber();
    if (std::optional<bool> flag = file.value(i).asBool())
      number = *flag ? 1 : 0;
    if (name && number)
      notes.push_back({std::string(*name), *number});
  }
  return notes;
}

/// One file of one parameter.
static Status addState(ForeignView &view, const UniversalModel &model, const std::string &name,
                       const std::string &fileName) {
  std::string state = fileName.substr(0, fileName.size() - 3), folder = view.folder + "/zero/" + name;
  uint32_t number = 0;
  Result<TorchFiles::File> file = view.files.add(folder, fileName, number);
  if (!file)
    return file.error();
  PickleValue root = (*file)->root();
  if (state == "step") {
    if (!view.progress.optimizerSteps)
      view.progress.optimizerSteps = readCount(root, **file);
    return {};
  }
  std::optional<PickleValue> held = root.isMap() ? root.find("param") : root;
  std::optional<PickleTensor> found = held ? held->asTensor() : std::nullopt;
  if (!found || state == "value")
    return foreignCorrupt((*file)->path(),
                          "expects a tensor 'param', but got " + (held ? held->describe() : "none"));
  ForeignTensor tensor{name, state == "fp32" ? "value" : state, {}, {}, {}, notesOf(root)};
  tensor.role = model.buffers.contains(name)  ? ForeignRole::Buffer
                : model.frozen.contains(name) ? ForeignRole::Frozen
                                              : ForeignRole::Parameter;
  auto shape = model.shapes.find(name);
  if (shape != model.shapes.end() && found->shape.size() == 1 &&
      shape->second.numElements == found->numElements())
    tensor.shape = shape->second.dims;
  Result<uint32_t> source = view.addSource(number, (*file)->path(), std::move(*found));
  return source ? view.addWhole(std::move(tensor), *source) : Status(source.error());
}

static Status addParameter(ForeignView &view, const UniversalModel &model, const std::string &name) {
  std::string folder = view.folder + "/zero/" + name;
  struct stat info = {};
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) // a link may lead anywhere
    return foreignCorrupt(folder, "expects a folder of a parameter");
  Result<std::vector<std::string>> names = listFolder(folder);
  if (!names)
    return names.error();
  // The value first, whatever the optimizer's states are called.
  if (auto value = std::find(names->begin(), names->end(), "fp32.pt"); value != names->end())
    std::rotate(names->begin(), value, value + 1);
  for (const std::string &file : *names)
    if (file.ends_with(".pt"))
      if (Status status = addState(view, model, name, file); !status)
        return status;
  return {};
}

/// What the model file has and zero/ has not: buffers, and frozen parameters where they are whole.
static Status addRest(ForeignView &view, const ModelStates &states) {
  for (const auto &[name, source] : states.buffers)
    if (!view.has(name))
      if (Status status = view.addWhole({name, "value", {}, {}, ForeignRole::Buffer, {}}, source); !status)
        return status;
  for (const ForeignShape &shape : states.frozen) {
    auto part = states.frozenParts.find(shape.name);
    if (view.has(shape.name))
      continue;
    if (part == states.frozenParts.end() ||
        view.sources[part->second].tensor.numElements() != shape.numElements)
      return foreignInvalid(view.folder, "has no whole value of the frozen parameter " + quote(shape.name),
                            "give the folder that was converted");
    if (Status status =
            view.addWhole({shape.name, "value", {}, shape.dims, ForeignRole::Frozen, {}}, part->second);
        !status)
      return status;
  }
  return {};
}

static void readOptimizerFile(ForeignView &view, const std::vector<std::string> &names) {
  if (!std::binary_search(names.begin(), names.end(), "optimizer_state.pt"))
    return;
  // What it has to say is useful, not needed: a file that cannot be read is not a reason to refuse the rest.
  uint32_t number = 0;
  if (Result<TorchFiles::File> file = view.files.add(view.folder + "/zero", "optimizer_state.pt", number))
    readLossScale((*file)->root(), view);
}

Status ds::rt::readUniversal(ForeignView &view, const std::vector<std::string> &names) {
  view.format = ForeignFormat::Universal;
  view.description = "universal checkpoint";
  ModelStates states;
  for (const char *name : {"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_model_states.pt",
                           "bf16_zero_pp_rank_0_mp_rank_00_model_states.pt"})
    if (std::binary_search(names.begin(), names.end(), name)) {
      Result<ModelStates> read = readModelStates(view, name, true);
      if (!read)
        return read.error();
      states = std::move(*read);
      break;
    }
  UniversalModel model;
  for (const ForeignShapes &group : states.groups)
    for (const ForeignShape &shape : group)
      model.shapes[shape.name] = shape;
  for (const ForeignShape &shape : states.frozen)
    model.shapes[shape.name] = shape, model.frozen.insert(shape.name);
  for (const auto &[name, source] : states.buffers)
    model.buffers.insert(name);

  Result<std::vector<std::string>> parameters = listFolder(view.folder + "/zero");
  if (!parameters)
    return parameters.error();
  for (const std::string &name : *parameters)
    if (!name.ends_with(".pt"))
      if (Status status = addParameter(view, model, name); !status)
        return status;
  for (const auto &[name, shape] : model.shapes)
    if (!model.frozen.contains(name) && !view.has(name))
      return foreignCorrupt(view.folder, "has no zero/" + name + "/fp32.pt, which the model file names");
  if (Status status = addRest(view, states); !status)
    return status;
  readOptimizerFile(view, *parameters);
  for (const auto &[alias, name] : states.tied)
    view.tie(name, alias);
  return {};
}
