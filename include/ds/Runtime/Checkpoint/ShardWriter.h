//===- ShardWriter.h - Writes one file of a checkpoint ------------------------------===//
//
// A new file, its space taken before the first byte, written in order and digested on the way, chunk by
// chunk; synced, and closed with an eye on what close says. Any failure is final.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_SHARDWRITER_H
#define DS_RUNTIME_CHECKPOINT_SHARDWRITER_H

#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Runtime/Checkpoint/StagedWriter.h"
#include "ds/Runtime/Files/FileLayer.h"

#include <memory>

namespace ds::rt {

class ShardWriter {
public:
  /// Makes `directory`/`name` of `bytes` bytes, written by way of `writer`, which is of `layer` and writes no
  /// other file meanwhile. Both outlive it.
  static Result<ShardWriter> create(FileLayer &layer, StagedWriter &writer, const std::string &directory,
                                    const std::string &name, uint64_t bytes, uint64_t chunkBytes);

  Status write(std::span<const std::byte> bytes);
  /// All of the file, which stays as it is until `finish` returns: written from where it lies, if that is
  /// aligned to kDirectUnit.
  Status writeImage(std::span<const std::byte> image);

  /// Syncs and closes. Internal: other than `bytes` bytes were written.
  Result<CheckpointFile> finish();

  ShardWriter(ShardWriter &&) noexcept;
  ShardWriter &operator=(ShardWriter &&) noexcept;
  /// Closes a file that is not finished; it stays where it is.
  ~ShardWriter();

private:
  struct Impl;
  Status writePieces(std::span<const std::byte> bytes, size_t size,
                     int (StagedWriter::*take)(std::span<const std::byte>));
  explicit ShardWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_SHARDWRITER_H
