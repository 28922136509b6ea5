//===- ExportFiles.cpp - The files of a model's folder -----------------------------------===//

#include "ExportFiles.h"

#include "Batches.h"
#include "Files/Text.h"
#include "Formats/Convert.h"
#include "Words.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Support/Adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ds::rt {
namespace {

bool isFloat(FileDType dtype) {
  return dtype == FileDType::F16 || dtype == FileDType::BF16 || dtype == FileDType::F32;
}

/// The type in which a tensor is written. Whole numbers and truth values stay what they are.
Result<FileDType> typeOf(const CheckpointTensor &tensor, const std::optional<FileDType> &wanted) {
  if (!wanted || tensor.dtype == *wanted || isInteger(tensor.dtype) || tensor.dtype == FileDType::Bool)
    return tensor.dtype;
  if (isFloat(tensor.dtype))
    return *wanted;
  return Error{
      ExitCode::Invalid,
      fmt::format("{} is kept as {}, which --dtype does not round", quote(tensor.name), spell(tensor.dtype)),
      "leave --dtype out"};
}

/// Converts pieces from the type they are kept in to the one they are written in.
class Converter {
public:
  explicit Converter(AdapterMerger *merger) : merger(merger) {}

  /// The piece as it is written. Invalid: a value that the type has no finite number for.
  Result<std::span<const std::byte>> convert(const ExportTensor &to, const Piece &piece,
                                             std::span<const std::byte> from) {
    const FileDType kept = to.tensor->dtype;
    const Result<bool> isAdded = merger ? merger->choose(*to.tensor) : Result<bool>(false);
    if (!isAdded)
      return isAdded.error();
    if (kept == to.dtype && !*isAdded)
      return from;
    BadElement bad;
    const std::byte *exact = from.data();
    if (kept != FileDType::F32 || *isAdded) { // what is less becomes 32 bits first: then one rounding
      wide.resize(piece.count * sizeof(float));
      convertElements(kept, from.data(), DType::F32, wide.data(), piece.count, {}, bad);
      exact = wide.data();
    }
    if (*isAdded)
      merger->add(piece.first, {reinterpret_cast<float *>(wide.data()), piece.count});
    if (to.dtype == FileDType::F32)
      return std::span<const std::byte>(wide);
    narrow.resize(piece.count * 2);
    if (convertElements(FileDType::F32, exact, *toDType(to.dtype), narrow.data(), piece.count, {}, bad))
      return std::span<const std::byte>(narrow);
    return Error{ExitCode::Invalid,
                 fmt::format("{}: element {} is {}, beyond {}", quote(to.name), piece.first + bad.position,
                             bad.value, bad.limit),
                 "export with --dtype bf16 or fp32, which hold it"};
  }

private:
  AdapterMerger *merger;
  std::vector<std::byte> wide, narrow;
};

} // namespace

static bool isAdapter(const CheckpointTensor &tensor) {
  return tensor.role == Role::Parameter && tensor.trainable && !layerOfAdapter(tensor.name).empty();
}

std::string descriptionOfAdapters(const Manifest &manifest) {
  return std::ranges::any_of(manifest.tensors, isAdapter) ? adapterConfigOf(manifest.modelConfig) : "";
}

Result<std::vector<ExportTensor>> listExport(const Manifest &manifest, const ExportOptions &options) {
  std::vector<ExportTensor> tensors;
  const bool hasAdapters = !descriptionOfAdapters(manifest).empty();
  for (const CheckpointTensor &tensor : manifest.tensors) {
    if (tensor.role != Role::Parameter && tensor.role != Role::Buffer)
      continue;
    if (hasAdapters && isAdapter(tensor) == options.merge)
      continue;
    const Result<FileDType> dtype = typeOf(tensor, options.dtype);
    if (!dtype)
      return dtype.error();
    const uint64_t bytes = elementsOf(tensor) * (bitSize(*dtype) / 8);
    tensors.push_back({tensor.name, &tensor, *dtype, bytes});
    for (const std::string &alias : tensor.aliases)
      if (options.tied)
        tensors.push_back({alias, &tensor, *dtype, bytes});
  }
  return tensors;
}

std::vector<std::vector<ExportTensor>> cutIntoShards(std::vector<ExportTensor> tensors, uint64_t maxBytes) {
  std::vector<std::vector<ExportTensor>> shards(1);
  uint64_t bytes = 0;
  for (ExportTensor &tensor : tensors) {
    if (!shards.back().empty() && (tensor.bytes > maxBytes || bytes > maxBytes - tensor.bytes)) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

std::string shardName(size_t number, size_t count) {
  return count == 1 ? "model.safetensors"
                    : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, count);
}

std::string spellIndex(const std::vector<std::vector<ExportTensor>> &shards) {
  uint64_t bytes = 0;
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < shards.size(); ++i)
    for (const ExportTensor &tensor : shards[i]) {
      bytes += tensor.bytes;
      files.emplace(tensor.name, shardName(i, shards.size()));
    }
  return dump({{"metadata", {{"total_size", bytes}}}, {"weight_map", files}});
}

Status writeShard(const Checkpoint &checkpoint, const std::string &path,
                  const std::vector<ExportTensor> &shard, AdapterMerger *merger) {
  std::vector<TensorSource> sources;
  for (const ExportTensor &tensor : shard)
    sources.push_back({tensor.name, tensor.dtype, tensor.tensor->shape, nullptr});
  const Result<SafeTensorsHeader> header = serialiseHeader(sources, {{"format", "pt"}});
  if (!header)
    return Error{header.error().code, quote(path) + ": " + header.error().message, header.error().hint};
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  const uint64_t bytes = header->bytes.size() + header->dataBytes;
  if (Status status = file->reserve(bytes); !status)
    return status;
  if (Status status = file->write(header->bytes); !status)
    return status;
  std::vector<const CheckpointTensor *> tensors;
  for (const size_t index : header->order)
    tensors.push_back(shard[index].tensor);
  Converter converter(merger);
  std::vector<std::byte> buffer;
  Batches batches(tensors);
  for (std::vector<Piece> pieces = batches.next(); !pieces.empty(); pieces = batches.next()) {
    if (Status status = readBatch(checkpoint, tensors, pieces, buffer); !status)
      return status;
    for (const Piece &piece : pieces) {
      const ExportTensor &to = shard[header->order[piece.tensor]];
      const Result<std::span<const std::byte>> written = converter.convert(
          to, piece, {buffer.data() + piece.at, piece.count * (bitSize(to.tensor->dtype) / 8)});
      if (!written)
        return written.error();
      if (Status status = file->write(*written); !status)
        return status;
    }
  }
  if (file->size() != bytes)
    return Error{ExitCode::Internal,
                 fmt::format("{} should have {} bytes, but has {}", quote(path), bytes, file->size()), ""};
  return file->commit();
}

} // namespace ds::rt
