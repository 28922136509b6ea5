//===- FileLayer.h - The file operations that saving is made of ------------------===//
//
// A checkpoint is safe because of the order in which a few system calls are made. They go through this layer,
// so that a test can let each of them fail, and can take away what a loss of power would take: data and names
// that nobody has synced. Reading needs no such care and uses files directly.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FILES_FILELAYER_H
#define DS_RUNTIME_FILES_FILELAYER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace ds::rt {

/// What direct writes are aligned to: enough for all disks there are.
inline constexpr size_t kDirectUnit = 4096;

/// Functions return 0, or the errno of what went wrong. Safe to be called from several threads for different
/// files.
class FileLayer {
public:
  virtual ~FileLayer() = default;

  /// A new file, for writing: its descriptor, or -errno. EEXIST if there is one of this name.
  virtual int create(const std::string &path) = 0;
  /// Takes the space for `bytes` bytes; 0 also where the file system cannot.
  virtual int reserve(int file, uint64_t bytes) = 0;
  /// Writes at `offset` what the system takes at once: so many bytes, or -errno. Several threads may write to
  /// one file.
  virtual int64_t write(int file, uint64_t offset, const void *data, size_t bytes) = 0;
  /// Asks that writes go past the system's cache, or no longer; until told otherwise they do not. Then
  /// offsets, sizes and addresses are multiples of kDirectUnit. Not 0 where that cannot be had.
  virtual int setDirect(int file, bool direct) = 0;
  /// What has been written survives a loss of power. A failure is final: what could not be written is gone,
  /// and asking again would succeed without it.
  virtual int sync(int file) = 0;
  /// The descriptor is gone whatever is returned.
  virtual int close(int file) = 0;

  virtual int makeDirectory(const std::string &path) = 0;
  /// The names in it survive a loss of power.
  virtual int syncDirectory(const std::string &path) = 0;
  virtual int syncDirectory(int directory) = 0;
  /// Both lie in one directory. What is called `to` is replaced if it is a file or an empty directory.
  virtual int rename(const std::string &from, const std::string &to) = 0;
  /// Gives each of two the name of the other, at once. ENOSYS or EINVAL where the file system cannot.
  virtual int exchange(const std::string &one, const std::string &other) = 0;
  /// What is removed is named within an open directory: a path may lead elsewhere the next time.
  virtual int remove(int directory, const std::string &file) = 0;
  virtual int removeDirectory(int parent, const std::string &name) = 0;
};

/// The operating system's.
FileLayer &systemFiles();

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_FILELAYER_H
