//===- AtomicFile.cpp - Files that are complete or absent ----------------------===//

#include "ds/Runtime/Formats/AtomicFile.h"

#include "SigPipe.h"
#include "Text.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

/// The directory part of `path`, "." if it has none.
static std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// ".<name>.<16 hex digits>.tmp" beside `target`; the name is shortened so that the whole fits NAME_MAX.
static std::string temporaryName(const std::string &target) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != ssize_t(sizeof(random)))
    random = uint64_t(getpid()) << 32 ^ uintptr_t(&random); // O_EXCL and the retry below do the rest
  char suffix[24];
  snprintf(suffix, sizeof(suffix), ".%016llx.tmp", static_cast<unsigned long long>(random));
  std::string name = target.substr(target.rfind('/') + 1);
  return directoryOf(target) + "/." + name.substr(0, 200) + suffix;
}

/// Follows links, including one that leads to a file that does not exist yet.
static std::string resolveLinks(std::string path) {
  for (int hops = 0; hops < 40; ++hops) {
    char link[PATH_MAX];
    ssize_t length = readlink(path.c_str(), link, sizeof(link));
    if (length < 0 || length == ssize_t(sizeof(link)))
      break; // not a link (or one that open will complain about)
    std::string next(link, size_t(length));
    path = next.starts_with('/') ? next : directoryOf(path).append("/").append(next);
  }
  return path;
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  if (path.empty() || path.ends_with('/') || path.find('\0') != std::string::npos)
    return Error{ExitCode::Io, "cannot write " + quote(path) + ": expects the name of a file", ""};
  struct stat info;
  bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return ioError("write", path, EISDIR, "name a file in that directory");
  if (exists && !S_ISREG(info.st_mode)) {
    file.fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd < 0)
      return ioError("write", path, errno);
    return file;
  }
  file.target = resolveLinks(path);
  for (int attempt = 0; attempt < 8 && file.fd < 0; ++attempt) {
    std::string name = temporaryName(file.target);
    file.fd = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.fd >= 0)
      file.temporary = std::move(name);
    else if (errno != EEXIST)
      break;
  }
  if (file.fd < 0)
    return ioError("write", path, errno);
  if (exists && fchmod(file.fd, info.st_mode & 07777) != 0 && errno != EPERM && errno != EOPNOTSUPP)
    return ioError("keep the permissions of", path, errno); // EPERM: a file system that has none
  return file;
}

Status AtomicFile::reserve(uint64_t bytes) {
  if (temporary.empty() || bytes == 0)
    return {};
  if (bytes > uint64_t(INT64_MAX))
    return ioError("write", path, EFBIG);
  int failure = posix_fallocate(fd, 0, off_t(bytes));
  // What does not know the operation says so; EINVAL is ZFS' way of saying it.
  if (failure == 0 || failure == EOPNOTSUPP || failure == EINVAL || failure == ENODEV || failure == ESPIPE)
    return {};
  return ioError("reserve " + std::to_string(bytes) + " bytes for", path, failure);
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  constexpr size_t kMostAtOnce = size_t(1) << 30; // Linux writes at most 2 GiB - 4 KiB at once
  BlockSigPipe guard;
  while (!bytes.empty()) {
    ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMostAtOnce));
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
  if (!temporary.empty() && ftruncate(fd, off_t(written)) != 0) // give back what was reserved
    return ioError("write", path, errno);
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0)
    return ioError("read back", path, errno);
  return MappedFile::adopt(copy, path);
}

/// Makes the contents durable. A failed fsync is final: the kernel has dropped the pages, asking again would
/// succeed without them.
Status AtomicFile::sync() {
  // A reservation that was larger than what was written would leave zeros at the end.
  if (ftruncate(fd, off_t(written)) != 0)
    return ioError("write", path, errno);
  if (fsync(fd) != 0)
    return ioError("sync", path, errno);
  return {};
}

Status AtomicFile::commit() {
  if (fd < 0)
    return Error{ExitCode::Internal, "commit of " + quote(path) + ", which is not open", ""};
  Status status;
  if (!temporary.empty())
    status = sync();
  if (close(std::exchange(fd, -1)) != 0 && status)
    status = ioError("close", path, errno);
  if (status && !temporary.empty() && rename(temporary.c_str(), target.c_str()) != 0)
    status = ioError("rename the finished file to", path, errno);
  if (!status || temporary.empty()) {
    drop();
    return status;
  }
  temporary.clear();
  int directory = open(directoryOf(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return {}; // a directory that may be written but not read: the rename is done, its durability not
               // promised
  int failure = fsync(directory) == 0 ? 0 : errno;
  close(directory);
  if (failure != 0 && failure != EINVAL && failure != EROFS)
    return ioError("sync the directory of", path, failure);
  return {};
}

void AtomicFile::drop() {
  if (fd >= 0)
    close(std::exchange(fd, -1));
  if (!temporary.empty())
    unlink(std::exchange(temporary, std::string()).c_str());
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept { *this = std::move(other); }

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(target, other.target);
  std::swap(temporary, other.temporary);
  std::swap(written, other.written);
  std::swap(fd, other.fd);
  return *this;
}

AtomicFile::~AtomicFile() { drop(); }

Status ds::rt::writeFileAtomically(const std::string &path, std::string_view text) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Status status = file->write(text); !status)
    return status;
  return file->commit();
}
