//===- FileLayer.cpp - The operating system's files -------------------------------===//

#include "ds/Runtime/Files/FileLayer.h"

#include "WriteSignals.h"
#include "ds/Support/Descriptor.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

int failureOf(int result) { return result == 0 ? 0 : errno; }

class SystemFiles : public FileLayer {
public:
  int create(const std::string &path) override {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    return file >= 0 ? file : -errno;
  }
  int reserve(int file, uint64_t bytes) override {
    if (bytes == 0)
      return 0;
    const BlockWriteSignals guard;
    const int failure = failureOf(::fallocate(file, 0, 0, static_cast<off_t>(bytes)));
    const bool unknown = failure == EOPNOTSUPP || failure == EINVAL || failure == ENODEV || failure == ENOSYS;
    return unknown ? 0 : failure;
  }
  int64_t write(int file, uint64_t offset, const void *data, size_t bytes) override {
    const BlockWriteSignals guard;
    for (;;) {
      const ssize_t count = ::pwrite(file, data, std::min(bytes, kMostAtOnce), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR)
        continue;
      return count < 0 ? -errno : count == 0 && bytes > 0 ? -ENOSPC : count;
    }
  }
  int setDirect(int file, bool direct) override {
    const int flags = ::fcntl(file, F_GETFL);
    if (flags < 0)
      return errno;
    return failureOf(::fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT));
  }
  int sync(int file) override { return failureOf(::fsync(file)); }
  int close(int file) override { return failureOf(::close(file)); }

  int makeDirectory(const std::string &path) override { return failureOf(::mkdir(path.c_str(), 0777)); }
  int syncDirectory(const std::string &path) override {
    const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory ? syncDirectory(directory.get()) : errno;
  }
  int syncDirectory(int directory) override {
    const int failure = failureOf(::fsync(directory));
    return failure == EINVAL ? 0 : failure; // file systems whose directories cannot be synced
  }
  int rename(const std::string &from, const std::string &to) override {
    return failureOf(std::rename(from.c_str(), to.c_str()));
  }
  int exchange(const std::string &one, const std::string &other) override {
    return failureOf(::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE));
  }
  int remove(int directory, const std::string &file) override {
    return failureOf(::unlinkat(directory, file.c_str(), 0));
  }
  int removeDirectory(int parent, const std::string &name) override {
    return failureOf(::unlinkat(parent, name.c_str(), AT_REMOVEDIR));
  }

private:
  static constexpr size_t kMostAtOnce = size_t(1) << 30; // Linux takes at most 2 GiB - 4 KiB
};

} // namespace

FileLayer &systemFiles() {
  static SystemFiles files;
  return files;
}

} // namespace ds::rt
