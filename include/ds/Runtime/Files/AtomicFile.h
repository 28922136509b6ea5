//===- AtomicFile.h - Files that are complete or absent ------------------------===//
//
// Everything that is worth keeping is written into a file without a name in the same directory (where the
// file system has none: under a temporary name), synced, and given its name: a crash, a full disk or a kill
// at any instant leaves the old file or the new one, never a half. It also makes saving over a file that is
// mapped as the source of the data safe, for the mapping keeps the old inode.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FILES_ATOMICFILE_H
#define DS_RUNTIME_FILES_ATOMICFILE_H

#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Support/Descriptor.h"
#include "ds/Support/Error.h"
#include "ds/Support/TemporaryFile.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds::rt {

/// A file being written. Destroyed without `commit` it leaves nothing behind. One thread at a time.
///
/// A symbolic link is followed: what it points to is replaced. A device or pipe (/dev/stdout, a FIFO) cannot
/// be renamed over and is written directly, and so is the file behind standard output or error. A replaced
/// file's permissions are kept.
class AtomicFile {
public:
  static Result<AtomicFile> create(const std::string &path);

  /// Asks for the space at once, so that a full disk is noticed before the first byte. Best effort: file
  /// systems without the operation are left alone.
  Status reserve(uint64_t bytes);

  /// Appends. After a failure the file can only be dropped.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);

  /// What was written so far, to be verified before it is committed. Io for a device or pipe.
  Result<MappedFile> map() const;

  /// Syncs, closes, renames and syncs the directory. On failure the temporary file is removed.
  Status commit();

  /// Bytes written so far.
  uint64_t size() const { return written; }

private:
  AtomicFile() = default;
  Status sync();
  int fd() const { return direct ? direct.get() : temporary.fd(); }

  std::string path;        ///< as the caller gave it, for messages
  std::string target;      ///< with links resolved
  TemporaryFile temporary; ///< not open when written directly
  Descriptor direct;       ///< a device or pipe
  uint64_t written = 0;
};

/// Writes `text` as the whole of `path`, atomically.
Status writeFileAtomically(const std::string &path, std::string_view text);

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_ATOMICFILE_H
