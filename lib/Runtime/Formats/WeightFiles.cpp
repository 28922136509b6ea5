//===- WeightFiles.cpp - The shards of a model's weights -----------------------===//

#include "Files/Text.h"
#include "SafeTensorsIndex.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <algorithm>
#include <map>
#include <new>

#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;

static Error corrupt(const std::string &path, const std::string &what) {
  return {ExitCode::Corrupt, quote(path) + ": " + what, "download the index and its shards again"};
}

/// Reads and checks the index at `path`: tensor name -> shard's number in `names`.
static Status readIndex(const std::string &path, WeightIndex &index) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > kMaxSafeTensorsHeader)
    return corrupt(path, "index of " + std::to_string(bytes.size()) + " bytes is over the limit of " +
                             std::to_string(kMaxSafeTensorsHeader));
  std::string message;
  if (!parseIndex({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, index, message))
    return corrupt(path, message);
  return {};
}

/// Opens every shard that the index names, and points `all` at the tensors it lists.
static Status openShards(const std::string &path, const WeightIndex &index,
                         std::vector<SafeTensorsFile> &shards, std::vector<const TensorEntry *> &all) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + (slash == 0));
  for (const std::string &name : index.files) {
    Result<MappedFile> mapped = MappedFile::openBeneath(directory, name);
    if (!mapped)
      return Error{mapped.error().code, quote(path) + ": weight_map: " + mapped.error().message,
                   mapped.error().hint};
    Result<SafeTensorsFile> shard = SafeTensorsFile::open(std::move(*mapped));
    if (!shard)
      return shard.error();
    shards.push_back(std::move(*shard));
  }
  for (const auto &[name, file] : index.weightMap) {
    const TensorEntry *entry = shards[file].find(name);
    if (!entry)
      return corrupt(path, "weight_map places tensor " + quote(name) + " in " + quote(index.files[file]) +
                               ", which does not have it");
    all.push_back(entry);
  }
  return {};
}

/// The index or, where there is none, the single file of a model's directory.
static Result<std::string> findInDirectory(const std::string &directory) {
  for (const char *name : {"model.safetensors.index.json", "model.safetensors"})
    if (std::string path = directory + "/" + name; access(path.c_str(), F_OK) == 0)
      return path;
  return Error{ExitCode::Io,
               quote(directory) + ": has neither model.safetensors.index.json nor model.safetensors",
               "weights are read from safetensors files only"};
}

Result<WeightFiles> WeightFiles::open(const std::string &path) try {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    Result<std::string> found = findInDirectory(path);
    return found ? open(*found) : Result<WeightFiles>(found.error());
  }
  WeightFiles weights;
  if (!path.ends_with(".json")) {
    Result<SafeTensorsFile> file = SafeTensorsFile::open(path);
    if (!file)
      return file.error();
    for (const TensorEntry &entry : file->entries())
      weights.all.push_back(&entry);
    weights.shards.push_back(std::move(*file));
  } else {
    WeightIndex index;
    if (Status status = readIndex(path, index); !status)
      return status.error();
    if (Status status = openShards(path, index, weights.shards, weights.all); !status)
      return status.error();
  }
  std::sort(weights.all.begin(), weights.all.end(),
            [](const TensorEntry *a, const TensorEntry *b) { return a->name < b->name; });
  return weights;
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the index of " + quote(path), "free memory"};
}

const TensorEntry *WeightFiles::find(std::string_view name) const {
  auto position =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const TensorEntry *entry, std::string_view key) { return entry->name < key; });
  return position != all.end() && (*position)->name == name ? *position : nullptr;
}
