//===- WriteWhole.cpp - Writes a checkpoint as if one rank had --------------------------===//

#include "WriteWhole.h"

#include "Batches.h"
#include "Files/Text.h"
#include "Words.h"

#include "ds/Runtime/Checkpoint/ShardWriter.h"
#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <map>

namespace ds::rt {
namespace {

constexpr const char *kFileName = "shard-00000-model-00001-of-00001.safetensors";

/// The header of the one file: every tensor begins at its beginning.
Result<SafeTensorsHeader> headerOf(const Manifest &manifest) {
  std::vector<TensorSource> sources;
  std::map<std::string, nlohmann::json> offsets;
  for (const CheckpointTensor &tensor : manifest.tensors) {
    sources.push_back({tensor.name, tensor.dtype, tensor.shape, nullptr});
    offsets[tensor.name] = {{"saved_offsets", std::vector<int64_t>(tensor.shape.size(), 0)}};
  }
  const std::string places =
      nlohmann::json(offsets).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return serialiseHeader(sources, {{"format", "pt"}, {"DCP_VERSION", "1.0"}, {"DCP_SHARDING_INFO", places}});
}

Result<CheckpointFile> writeFile(const std::string &directory, const Manifest &manifest,
                                 const SafeTensorsHeader &header, const ReadElements &read) {
  StagedWriter staged(systemFiles());
  Result<ShardWriter> writer =
      ShardWriter::create(systemFiles(), staged, directory, kFileName, header.bytes.size() + header.dataBytes,
                          manifest.chunkBytes);
  if (!writer)
    return writer.error();
  if (Status status = writer->write(std::as_bytes(std::span(header.bytes))); !status)
    return status.error();
  std::vector<const CheckpointTensor *> tensors;
  for (const size_t index : header.order)
    tensors.push_back(&manifest.tensors[index]);
  std::vector<std::byte> buffer(Batches::kBytes);
  Batches batches(tensors);
  for (std::vector<Piece> pieces = batches.next(); !pieces.empty(); pieces = batches.next())
    for (const Piece &piece : pieces) {
      if (Status status = read(header.order[piece.tensor], piece.first, piece.count, buffer.data()); !status)
        return status.error();
      const uint64_t bytes = piece.count * (bitSize(tensors[piece.tensor]->dtype) / 8);
      if (Status status = writer->write({buffer.data(), bytes}); !status)
        return status.error();
    }
  Result<CheckpointFile> file = writer->finish();
  if (!file)
    return file;
  if (const int failure = systemFiles().syncDirectory(directory))
    return ioError("sync", directory, failure);
  return file;
}

} // namespace

Result<std::string> writeWhole(const std::string &root, Manifest manifest, const ReadElements &read) {
  manifest.mesh = Mesh();
  manifest.files.clear();
  uint64_t bytes = 0;
  for (CheckpointTensor &tensor : manifest.tensors) {
    tensor.layout = Layout();
    bytes += bytesOf(tensor);
  }
  while (bytes / manifest.chunkBytes > kMostChunks)
    manifest.chunkBytes *= 2;
  const Result<SafeTensorsHeader> header = headerOf(manifest);
  if (!header)
    return header.error();
  const Result<std::string> unfinished = beginSave(systemFiles(), root, manifest.step);
  if (!unfinished)
    return unfinished.error();
  Result<CheckpointFile> file = writeFile(*unfinished, manifest, *header, read);
  Result<std::string> path = file ? Result<std::string>(*unfinished) : Result<std::string>(file.error());
  if (path) {
    manifest.files.push_back(std::move(*file));
    path = commitSave(systemFiles(), root, *unfinished, manifest);
  }
  if (!path)
    static_cast<void>(removeCheckpoint(systemFiles(), *unfinished)); // what stays of it has no manifest
  return path;
}

} // namespace ds::rt
