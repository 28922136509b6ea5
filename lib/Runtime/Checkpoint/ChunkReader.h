//===- ChunkReader.h - Reads and digests chunks ahead of who uses them ----------------===//
//
// A disk gives most when asked for several large pieces at a time, and a digest costs a core something. So
// threads read the next chunks, past the system's cache where that can be had, and compare digests, while the
// caller uses the chunk before.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINT_CHUNKREADER_H
#define DS_LIB_RUNTIME_CHECKPOINT_CHUNKREADER_H

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <functional>

namespace ds::rt {

/// One chunk of one file of a manifest.
struct ChunkNumber {
  uint32_t file = 0;
  uint64_t chunk = 0;
};

/// What was read: where in the file it begins, and whether it is what was written.
struct ReadChunk {
  uint32_t file = 0;
  uint64_t offset = 0;
  std::span<const std::byte> bytes; ///< valid during the call
  bool good = false;
};

/// Reads `chunks` of the checkpoint in `directory` and hands them to `use` in their order, on the caller's
/// thread. Ends with the first error of `use`, or Io or Corrupt where a file cannot be read to its end.
Status readChunks(const std::string &directory, const Manifest &manifest,
                  const std::vector<ChunkNumber> &chunks,
                  const std::function<Status(const ReadChunk &)> &use);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINT_CHUNKREADER_H
