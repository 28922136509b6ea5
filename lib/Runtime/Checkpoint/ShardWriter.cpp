//===- ShardWriter.cpp - Writes one file of a checkpoint -----------------------------===//

#include "ds/Runtime/Checkpoint/ShardWriter.h"

#include "Files/Text.h"

#include <algorithm>
#include <utility>

namespace ds::rt {

struct ShardWriter::Impl {
  Impl(FileLayer &layer, StagedWriter &writer, std::string path, CheckpointFile file, uint64_t chunkBytes)
      : layer(layer), writer(writer), path(std::move(path)), file(std::move(file)), chunkBytes(chunkBytes) {}
  ~Impl() {
    if (descriptor < 0)
      return;
    writer.finish(); // nothing may write to a descriptor that another file has then
    layer.close(descriptor);
  }

  void digest(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<uint64_t>(bytes.size(), chunkBytes - inChunk));
      digester.add(part);
      inChunk += part.size();
      bytes = bytes.subspan(part.size());
      if (inChunk == chunkBytes)
        endChunk();
    }
  }
  void endChunk() {
    file.digests.push_back(digester.finish());
    inChunk = 0;
  }

  FileLayer &layer;
  StagedWriter &writer;
  const std::string path;
  CheckpointFile file;
  const uint64_t chunkBytes;
  int descriptor = -1;
  uint64_t written = 0, inChunk = 0;
  Digester digester;
};

Result<ShardWriter> ShardWriter::create(FileLayer &layer, StagedWriter &writer, const std::string &directory,
                                        const std::string &name, uint64_t bytes, uint64_t chunkBytes) {
  auto impl = std::make_unique<Impl>(layer, writer, directory + "/" + name, CheckpointFile{name, bytes, {}},
                                     chunkBytes);
  const int file = layer.create(impl->path);
  if (file < 0)
    return ioError("make", impl->path, -file);
  impl->descriptor = file;
  writer.begin(file);
  if (const int failure = layer.reserve(file, bytes))
    return ioError("reserve " + std::to_string(bytes) + " bytes for", impl->path, failure);
  return ShardWriter(std::move(impl));
}

/// Digests and hands over `bytes` in pieces of `size`.
Status ShardWriter::writePieces(std::span<const std::byte> bytes, size_t size,
                                int (StagedWriter::*take)(std::span<const std::byte>)) {
  int failure = 0;
  while (!bytes.empty() && failure == 0) {
    const auto part = bytes.first(std::min(bytes.size(), size));
    impl->digest(part);
    impl->written += part.size();
    failure = (impl->writer.*take)(part);
    bytes = bytes.subspan(part.size());
  }
  return failure ? Status(ioError("write", impl->path, failure)) : Status();
}

Status ShardWriter::write(std::span<const std::byte> bytes) {
  constexpr size_t kPiece = size_t(256) << 10; // is still in a cache when it is copied behind its digest
  return writePieces(bytes, kPiece, &StagedWriter::append);
}

Status ShardWriter::writeImage(std::span<const std::byte> image) {
  constexpr size_t kPiece = size_t(4) << 20; // a block of the writer's, which is to have work early
  return writePieces(image, kPiece, &StagedWriter::appendStable);
}

Result<CheckpointFile> ShardWriter::finish() {
  if (const int failure = impl->writer.finish())
    return ioError("write", impl->path, failure);
  if (impl->written != impl->file.bytes)
    return Error{ExitCode::Internal,
                 quote(impl->path) + " should have " + std::to_string(impl->file.bytes) + " bytes, but has " +
                     std::to_string(impl->written),
                 ""};
  if (impl->inChunk > 0)
    impl->endChunk();
  if (const int failure = impl->layer.sync(impl->descriptor))
    return ioError("sync", impl->path, failure);
  if (const int failure = impl->layer.close(std::exchange(impl->descriptor, -1)))
    return ioError("close", impl->path, failure);
  return std::move(impl->file);
}

ShardWriter::ShardWriter(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
ShardWriter::ShardWriter(ShardWriter &&) noexcept = default;
ShardWriter &ShardWriter::operator=(ShardWriter &&) noexcept = default;
ShardWriter::~ShardWriter() = default;

} // namespace ds::rt
