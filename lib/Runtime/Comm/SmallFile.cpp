//===- SmallFile.cpp - Files that another process may have put there --------------===//
//
// Looked at before it is opened, for opening a device can do things; and once more after it, for it may have
// been replaced in between.
//
//===---------------------------------------------------------------------------===//
#include "SmallFile.h"

#include "Control/Socket.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

const char *kindOf(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "a directory";
  case S_IFLNK:
    return "a symbolic link";
  case S_IFIFO:
    return "a FIFO";
  case S_IFSOCK:
    return "a socket";
  default:
    return "a device";
  }
}

/// Why `status` is not that of a small file of `owner`; empty if it is.
std::string refuse(const struct stat &status, uid_t owner) {
  if (!S_ISREG(status.st_mode))
    return fmt::format("is {}", kindOf(status.st_mode));
  if (status.st_uid != owner)
    return fmt::format("belongs to user {}, not to user {}", status.st_uid, owner);
  if (status.st_size > static_cast<off_t>(kMostFileBytes))
    return fmt::format("has {} bytes, and at most {} are expected", status.st_size, kMostFileBytes);
  return {};
}

} // namespace

SmallFile readSmallFile(int directory, const std::string &path, uid_t owner) {
  SmallFile file;
  struct stat status;
  if (::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return file;
  if (file.refusal = refuse(status, owner); !file.refusal.empty())
    return file;
  const Socket fd(
      ::openat(directory, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
  if (!fd && errno != ENOENT && errno != ESTALE && errno != EINTR)
    file.refusal = fmt::format("cannot be read: {}", std::strerror(errno));
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return file;
  if (file.refusal = refuse(status, owner); !file.refusal.empty())
    return file;
  file.text.resize(kMostFileBytes);
  const ssize_t size = ::read(fd.get(), file.text.data(), file.text.size());
  file.text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return file;
}

} // namespace ds::rt
