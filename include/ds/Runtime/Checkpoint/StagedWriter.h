//===- StagedWriter.h - Writes files as fast as the disk takes them ------------------===//
//
// A disk wants several large writes at a time, past the system's cache, which costs a copy and would write
// it later, all at once. Bytes are gathered in a few aligned blocks; threads write full ones while the next
// is filled. Where direct writes cannot be had (tmpfs) the same goes through the cache. The memory and the
// threads are made once and serve one file after another.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_STAGEDWRITER_H
#define DS_RUNTIME_CHECKPOINT_STAGEDWRITER_H

#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <memory>
#include <span>

namespace ds::rt {

struct StagedWriterOptions {
  uint32_t threads = 4;                ///< writes at a time, fewer where the system starts no more threads;
                                       ///< 0: the caller's thread writes, one after another
  size_t blockBytes = size_t(4) << 20; ///< a multiple of kDirectUnit
};

class StagedWriter {
public:
  explicit StagedWriter(FileLayer &layer, const StagedWriterOptions &options = {});
  ~StagedWriter();

  /// Bytes of its blocks.
  static uint64_t memoryBytes(const StagedWriterOptions &options);

  /// From now on writes to `file`, from its start. Nothing of an earlier file is under way.
  void begin(int file);
  /// Appends. The errno of any write so far, 0 for none.
  int append(std::span<const std::byte> bytes);
  /// The same of bytes that stay where they are, and what they are, until `finish` or the next `begin`
  /// returns. If they are aligned to kDirectUnit they are written from there.
  int appendStable(std::span<const std::byte> bytes);
  /// Returns when all has been written: 0, or errno.
  int finish();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_STAGEDWRITER_H
