//===- ForeignWeights.cpp - Weights as Hugging Face keeps them ------------------===//
//
// safetensors where there are some, else files of torch.save: a flat dict of names and tensors, in one
// pytorch_model.bin or in the shards that its index names. Names of one file that show the same elements are
// tied.
//
//===---------------------------------------------------------------------------===//

#include "Files/Text.h"
#include "ForeignView.h"
#include "Formats/SafeTensorsIndex.h"

#include <algorithm>

using namespace ds;
using namespace ds::rt;

static Status readSafeTensors(ForeignView &view) {
  Result<WeightFiles> files = WeightFiles::open(view.folder);
  if (!files)
    return files.error();
  view.description = "safetensors";
  view.weights = std::move(*files);
  for (const TensorEntry *entry : view.weights->entries()) {
    if (bitSize(entry->dtype) % 8 != 0)
      return foreignInvalid(view.folder, "tensor " + quote(entry->name) + " has elements of less than a byte",
                            "save it in another type");
    view.sources.push_back({0, {}, entry});
    if (Status status = view.addWhole({std::string(entry->name), "value", {}, {}, {}, {}},
                                      uint32_t(view.sources.size() - 1));
        !status)
      return status;
  }
  return {};
}

/// Adds the tensors of a file; `wanted`: the names that count, or null for all.
static Status readTorchWeights(ForeignView &view, const std::string &name,
                               const std::vector<std::string_view> *wanted) {
  uint32_t number = 0;
  Result<TorchFiles::File> file = view.files.add(view.folder, name, number);
  if (!file)
    return file.error();
  PickleValue root = (*file)->root();
  if (!root.isMap())
    return foreignCorrupt((*file)->path(), "expects a dict of tensors, but got " + root.describe());
  using Place = std::tuple<std::string, uint64_t, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Place, std::string> owners;
  for (size_t i = 0; i < root.size(); ++i) {
    std::optional<std::string_view> key = root.key(i).asText();
    std::optional<PickleTensor> tensor = root.value(i).asTensor();
    if (!key || !tensor)
      return foreignInvalid(
          (*file)->path(),
          "expects names of tensors, but got " +
              (key ? quote(*key) + ": " + root.value(i).describe() : root.key(i).describe()),
          "save the module's state_dict(), not a dict that has it");
    if (wanted && !std::binary_search(wanted->begin(), wanted->end(), *key))
      continue;
    auto [owner, isNew] =
        owners.try_emplace({tensor->storage, tensor->offset, tensor->shape, tensor->strides}, *key);
    if (!isNew && tensor->numElements() > 0) {
      view.tie(owner->second, std::string(*key));
      continue;
    }
    Result<uint32_t> source = view.addSource(number, (*file)->path(), std::move(*tensor));
    if (!source)
      return source.error();
    if (Status status = view.addWhole({std::string(*key), "value", {}, {}, {}, {}}, *source); !status)
      return status;
  }
  return {};
}

static Status readTorchShards(ForeignView &view, const std::string &indexName) {
  Result<MappedFile> file = MappedFile::openBeneath(view.folder, indexName);
  if (!file)
    return file.error();
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  WeightIndex index;
  std::string message;
  if (text.size() > kMaxSafeTensorsHeader || !parseIndex(text, index, message))
    return foreignCorrupt(file->path(), message.empty() ? "is too long for an index" : message);
  std::vector<std::vector<std::string_view>> names(index.files.size()); // sorted, as the map is
  for (const auto &[name, shard] : index.weightMap)
    names[shard].push_back(name);
  for (size_t shard = 0; shard < names.size(); ++shard)
    if (Status status = readTorchWeights(view, index.files[shard], &names[shard]); !status)
      return status;
  std::vector<std::string> tied;
  for (const std::vector<std::string> &group : view.tied)
    tied.insert(tied.end(), group.begin(), group.end());
  for (const auto &[name, shard] : index.weightMap)
    if (!view.has(name) && std::find(tied.begin(), tied.end(), name) == tied.end())
      return foreignCorrupt(file->path(), "weight_map places tensor " + quote(name) + " in " +
                                              quote(index.files[shard]) + ", which does not have it");
  return {};
}

Status ds::rt::readWeights(ForeignView &view, const std::vector<std::string> &names) {
  view.format = ForeignFormat::Weights;
  auto has = [&](std::string_view name) { return std::binary_search(names.begin(), names.end(), name); };
  if (has("model.safetensors") || has("model.safetensors.index.json"))
    return readSafeTensors(view);
  view.description = "weights of torch.save";
  if (has("pytorch_model.bin.index.json"))
    return readTorchShards(view, "pytorch_model.bin.index.json");
  return readTorchWeights(view, "pytorch_model.bin", nullptr);
}
