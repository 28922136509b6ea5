//===- ShardWriter.cpp - Writes one file of a checkpoint -----------------------------===//

#include "ds/Runtime/Checkpoint/ShardWriter.h"

#include "Formats/Text.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ds::rt {

/// What is written at once at least, so that thousands of small tensors are not as many system calls.
static constexpr size_t kGathered = size_t(1) << 20;

struct ShardWriter::Impl {
  Impl(FileLayer &layer, std::string path, CheckpointFile file, uint64_t chunkBytes)
      : layer(layer), path(std::move(path)), file(std::move(file)), chunkBytes(chunkBytes) {
    XXH3_128bits_reset(hash.get());
  }
  ~Impl() {
    if (descriptor >= 0)
      layer.close(descriptor);
  }

  void digest(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<uint64_t>(bytes.size(), chunkBytes - inChunk));
      XXH3_128bits_update(hash.get(), part.data(), part.size());
      inChunk += part.size();
      bytes = bytes.subspan(part.size());
      if (inChunk == chunkBytes)
        endChunk();
    }
  }
  void endChunk() {
    const XXH128_hash_t value = XXH3_128bits_digest(hash.get());
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(value.high64),
                  static_cast<unsigned long long>(value.low64));
    file.digests.emplace_back(text);
    XXH3_128bits_reset(hash.get());
    inChunk = 0;
  }

  Status put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const int64_t count = layer.write(descriptor, bytes.data(), bytes.size());
      if (count < 0)
        return ioError("write", path, static_cast<int>(-count));
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return {};
  }
  Status flush() {
    Status status = put(gathered);
    gathered.clear();
    return status;
  }

  FileLayer &layer;
  const std::string path;
  CheckpointFile file;
  const uint64_t chunkBytes;
  int descriptor = -1;
  uint64_t written = 0, inChunk = 0;
  std::vector<std::byte> gathered;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash{XXH3_createState(), XXH3_freeState};
};

Result<ShardWriter> ShardWriter::create(FileLayer &layer, const std::string &directory,
                                        const std::string &name, uint64_t bytes, uint64_t chunkBytes) {
  auto impl =
      std::make_unique<Impl>(layer, directory + "/" + name, CheckpointFile{name, bytes, {}}, chunkBytes);
  const int file = layer.create(impl->path);
  if (file < 0)
    return ioError("make", impl->path, -file);
  impl->descriptor = file;
  if (const int failure = layer.reserve(file, bytes))
    return ioError("reserve " + std::to_string(bytes) + " bytes for", impl->path, failure);
  impl->gathered.reserve(kGathered);
  return ShardWriter(std::move(impl));
}

Status ShardWriter::write(std::span<const std::byte> bytes) {
  impl->digest(bytes);
  impl->written += bytes.size();
  if (impl->gathered.size() + bytes.size() < kGathered) {
    impl->gathered.insert(impl->gathered.end(), bytes.begin(), bytes.end());
    return {};
  }
  if (Status status = impl->flush(); !status)
    return status;
  return impl->put(bytes);
}

Result<CheckpointFile> ShardWriter::finish() {
  if (Status status = impl->flush(); !status)
    return status.error();
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
