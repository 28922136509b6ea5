//===- StorageFile.cpp - The file that holds a rank's storage arena ----------------===//
//
// All that can be wrong with a directory shows here, before the first step. The name goes first, and the
// space is taken when it is gone: whatever ends the process, the system frees the bytes.
//
//===---------------------------------------------------------------------------===//
#include "StorageFile.h"

#include "Formats/Text.h"
#include "ds/Runtime/Formats/StorageWatch.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace ds::rt {
namespace {

Error refusal(const std::string &directory, const std::string &why, const char *hint) {
  return Error{ExitCode::Io, fmt::format("storage {}: {}", quote(directory), why), hint};
}

constexpr char kGiveAnother[] = "name a directory on a local disk with --nvme DIR";

/// The process that `name` belongs to, or 0 if it is no file of storage.
pid_t ownerOf(std::string_view name) {
  constexpr std::string_view prefix = kStorageFilePrefix;
  pid_t pid = 0;
  if (!name.starts_with(prefix))
    return 0;
  name.remove_prefix(prefix.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool isWhole = error == std::errc() && pid > 0;
  return isWhole && name.substr(static_cast<size_t>(end - name.data())).starts_with("-rank") ? pid : 0;
}

/// Removes what processes of this user that are no more have left in `directory`. A name that another name
/// space's process is about to remove itself may go too: it holds the file by then.
void removeStale(const std::string &directory) {
  const std::unique_ptr<DIR, int (*)(DIR *)> list(::opendir(directory.c_str()), &::closedir);
  if (!list)
    return;
  while (const dirent *entry = ::readdir(list.get())) {
    const pid_t owner = ownerOf(entry->d_name);
    struct stat status {};
    if (owner != 0 && ::kill(owner, 0) != 0 && errno == ESRCH &&
        ::fstatat(::dirfd(list.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == ::geteuid())
      ::unlinkat(::dirfd(list.get()), entry->d_name, 0);
  }
}

/// Opens a new file in `directory` and takes its name away.
Result<int> openNameless(const std::string &directory, uint32_t rank) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string path = fmt::format("{}/{}{}-rank{}{}", directory, kStorageFilePrefix, ::getpid(), rank,
                                         attempt == 0 ? "" : fmt::format("-{}", attempt));
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
      ::unlink(path.c_str());
      return file;
    }
    if (errno != EEXIST) // another name space may have a process of this number
      return refusal(directory, fmt::format("cannot be written: {}", std::strerror(errno)), kGiveAnother);
  }
  return refusal(directory, "has too many files of this name", "remove ds-storage-* there");
}

/// Takes the space for all bytes.
Status allocate(int file, const std::string &directory, uint64_t bytes) {
  int result;
  while ((result = ::fallocate(file, 0, 0, static_cast<off_t>(bytes))) != 0 && errno == EINTR)
    ;
  if (result == 0)
    return {};
  const int error = errno;
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    return refusal(directory, fmt::format("cannot allocate {} bytes: {}", bytes, std::strerror(error)),
                   kGiveAnother);
  struct statvfs system {};
  const uint64_t room = ::fstatvfs(file, &system) == 0 ? uint64_t(system.f_bavail) * system.f_frsize : 0;
  return Error{
      ExitCode::DoesNotFit,
      fmt::format("storage {}: the plan keeps {} bytes there on each rank, but {}", quote(directory), bytes,
                  error == ENOSPC ? fmt::format("{} are free", room)
                                  : fmt::format("no such file may be made: {}", std::strerror(error))),
      "free space, name another directory with --nvme DIR, or keep less on NVMe"};
}

Status prepare(int file, const std::string &directory, uint64_t bytes) {
  struct statfs system {};
  if (::fstatfs(file, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
    return refusal(directory, "is memory (tmpfs), of which nothing is saved by moving states there",
                   kGiveAnother);
  const int flags = ::fcntl(file, F_GETFL);
  if (::fcntl(file, F_SETFL, flags | O_DIRECT) != 0)
    return refusal(directory,
                   "its file system has no direct access (O_DIRECT), so that what is moved there stays "
                   "in memory",
                   kGiveAnother);
  return allocate(file, directory, bytes);
}

} // namespace

Result<int> makeStorageFile(const std::string &directory, uint32_t rank, uint64_t bytes) {
  const StorageOperation making("making a file in", directory);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0)
    return refusal(directory, std::strerror(errno), kGiveAnother);
  if (!S_ISDIR(status.st_mode))
    return refusal(directory, "is no directory", kGiveAnother);
  removeStale(directory);
  Result<int> file = openNameless(directory, rank);
  if (!file)
    return file;
  if (Status prepared = prepare(*file, directory, bytes); !prepared) {
    ::close(*file);
    return prepared.error();
  }
  return file;
}

} // namespace ds::rt
