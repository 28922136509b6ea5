//===- AtomicFile.cpp - Files that are complete or absent ----------------------===//

#include "ds/Runtime/Files/AtomicFile.h"

#include "OutputPath.h"
#include "Text.h"
#include "WriteSignals.h"
#include "ds/Runtime/Files/StorageWatch.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  if (path.empty() || path.ends_with('/') || path.find('\0') != std::string::npos)
    return Error{ExitCode::Io, "cannot write " + quote(path) + ": expects the name of a file", ""};
  struct stat info;
  bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return ioError("write", path, EISDIR, "name a file in that directory");
  const int standard = exists ? standardStreamOf(info) : -1;
  if (standard >= 0 || (exists && !S_ISREG(info.st_mode))) {
    file.direct = Descriptor(standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, 3)
                                           : open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file.direct)
      return ioError("write", path, errno);
    return file;
  }
  file.target = resolveLinks(path);
  if (const int error = file.temporary.open(file.target))
    return ioError("write", path, error);
  if (exists && fchmod(file.fd(), info.st_mode & 07777) != 0 && errno != EPERM && errno != EOPNOTSUPP)
    return ioError("keep the permissions of", path, errno); // EPERM: a file system that has none
  return file;
}

Status AtomicFile::reserve(uint64_t bytes) {
  if (direct || bytes == 0)
    return {};
  if (bytes > uint64_t(INT64_MAX))
    return ioError("write", path, EFBIG);
  BlockWriteSignals guard;
  int failure = posix_fallocate(fd(), 0, off_t(bytes));
  // What does not know the operation says so; EINVAL is ZFS' way of saying it.
  if (failure == 0 || failure == EOPNOTSUPP || failure == EINVAL || failure == ENODEV || failure == ESPIPE)
    return {};
  return ioError("reserve " + std::to_string(bytes) + " bytes for", path, failure);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kMostAtOnce = size_t(1) << 30; // Linux writes at most 2 GiB - 4 KiB at once
  BlockWriteSignals guard;
  while (!bytes.empty()) {
    const StorageOperation writing("writing", path);
    ssize_t count = ::write(fd(), bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ioError("write", path, errno);
    if (count == 0)
      return ioError("write", path, ENOSPC);
    bytes = bytes.subspan(size_t(count));
    written += uint64_t(count);
  }
  return {};
}

Status AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Result<MappedFile> AtomicFile::map() const {
  if (!direct && ftruncate(fd(), off_t(written)) != 0) // give back what was reserved
    return ioError("write", path, errno);
  int copy = fcntl(fd(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return ioError("read back", path, errno);
  return MappedFile::adopt(copy, path);
}

/// Makes the contents durable. A failed fsync is final: the kernel has dropped the pages, asking again would
/// succeed without them.
Status AtomicFile::sync() {
  BlockWriteSignals guard;
  const StorageOperation syncing("syncing", path);
  // A reservation that was larger than what was written would leave zeros at the end.
  if (ftruncate(fd(), off_t(written)) != 0)
    return ioError("write", path, errno);
  if (fsync(fd()) != 0)
    return ioError("sync", path, errno);
  return {};
}

Status AtomicFile::commit() {
  if (fd() < 0)
    return Error{ExitCode::Internal, "commit of " + quote(path) + ", which is not open", ""};
  if (direct)
    return close(direct.release()) == 0 ? Status() : ioError("close", path, errno);
  Status status = sync();
  if (status)
    if (const int error = temporary.keep(target))
      status = ioError("give its name to the finished file", path, error);
  temporary.drop();
  if (!status)
    return status;
  const Descriptor directory(open(directoryOf(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return {}; // a directory that may be written but not read: the rename is done, its durability not
               // promised
  int failure = fsync(directory.get()) == 0 ? 0 : errno;
  if (failure != 0 && failure != EINVAL && failure != EROFS)
    return ioError("sync the directory of", path, failure);
  return {};
}

Status ds::rt::writeFileAtomically(const std::string &path, std::string_view text) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Status status = file->write(text); !status)
    return status;
  return file->commit();
}
