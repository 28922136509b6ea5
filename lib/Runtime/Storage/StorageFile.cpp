//===- StorageFile.cpp - The file that holds a rank's storage arena ----------------===//
//
// All that can be wrong with a directory shows here, before the first step; of two on one file system the
// second finds what the first has left. The name goes first, and the space is taken when it is gone: whatever
// ends the process, the system frees the bytes.
//
//===---------------------------------------------------------------------------===//
#include "StorageFile.h"

#include "Files/Text.h"
#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Support/Descriptor.h"
#include "ds/Support/Processors.h"

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

Error refusal(const StorageFileRequest &request, const std::string &why) {
  return Error{ExitCode::Io, fmt::format("storage {}: {}", quote(request.directory), why),
               fmt::format("name a directory on a local disk with {} DIR", request.option)};
}

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

/// Opens a new file and takes its name away.
Result<int> openNameless(const StorageFileRequest &request) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string path =
        fmt::format("{}/{}{}-rank{}{}", request.directory, kStorageFilePrefix, ::getpid(), request.rank,
                    attempt == 0 ? "" : fmt::format("-{}", attempt));
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
      ::unlink(path.c_str());
      return file;
    }
    if (errno != EEXIST) // another name space may have a process of this number
      return refusal(request, fmt::format("cannot be written: {}", std::strerror(errno)));
  }
  Error error = refusal(request, "has too many files of this name");
  error.hint = "remove ds-storage-* there";
  return error;
}

/// Bytes that are free where `file` is; 0 if the system does not say.
uint64_t roomFor(int file) {
  struct statvfs system {};
  return ::fstatvfs(file, &system) == 0 ? uint64_t(system.f_bavail) * system.f_frsize : 0;
}

/// What the neighbour has taken of the room of `file`: " beside the 4096 of '/nvme0', which is on the same
/// file system", or nothing.
std::string describeNeighbour(int file, const StorageNeighbour &neighbour) {
  struct stat own {
  }, other{};
  if (neighbour.file < 0 || ::fstat(file, &own) != 0 || ::fstat(neighbour.file, &other) != 0 ||
      own.st_dev != other.st_dev)
    return {};
  return fmt::format(" beside the {} of {}, which is on the same file system", neighbour.bytes,
                     quote(neighbour.directory));
}

/// Takes the space of one range: an errno, or 0.
int allocateRange(int file, const StorageRange &range) {
  int result;
  while ((result = ::fallocate(file, 0, static_cast<off_t>(range.begin),
                               static_cast<off_t>(range.end - range.begin))) != 0 &&
         errno == EINTR)
    ;
  return result == 0 ? 0 : errno;
}

/// ", 65536 of all 4 ranks on this machine": the room that is asked for where several share the disk. What is
/// free is what the others have left.
std::string describeOthers(uint64_t bytes) {
  const uint32_t ranks = localRanks();
  return ranks > 1 ? fmt::format(", {} of all {} ranks on this machine", bytes * ranks, ranks) : "";
}

/// Takes the space for all bytes.
Status allocate(int file, const StorageFileRequest &request) {
  const uint64_t bytes = bytesOf(request.ranges), room = roomFor(file);
  int error = 0;
  for (size_t i = 0; i < request.ranges.size() && error == 0; ++i)
    error = allocateRange(file, request.ranges[i]);
  if (error == 0)
    return {};
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    return refusal(request, fmt::format("cannot allocate {} bytes: {}", bytes, std::strerror(error)));
  return Error{
      ExitCode::DoesNotFit,
      fmt::format("storage {}: the plan keeps {} bytes there on each rank{}, but {}{}",
                  quote(request.directory), bytes, describeOthers(bytes),
                  error == ENOSPC ? fmt::format("{} are free", room)
                                  : fmt::format("no such file may be made: {}", std::strerror(error)),
                  error == EFBIG ? "" : describeNeighbour(file, request.neighbour)),
      fmt::format("free space, name another directory with {} DIR, or keep less on NVMe", request.option)};
}

Status prepare(int file, const StorageFileRequest &request) {
  struct statfs system {};
  if (::fstatfs(file, &system) == 0 && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC))
    return refusal(request, "is memory (tmpfs), of which nothing is saved by moving states there");
  const int flags = ::fcntl(file, F_GETFL);
  if (::fcntl(file, F_SETFL, flags | O_DIRECT) != 0)
    return refusal(request, "its file system has no direct access (O_DIRECT), so that what is moved there "
                            "stays in memory");
  return allocate(file, request);
}

} // namespace

Result<int> makeStorageFile(const StorageFileRequest &request) {
  const std::string &directory = request.directory;
  const StorageOperation making("making a file in", directory);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0)
    return refusal(request, std::strerror(errno));
  if (!S_ISDIR(status.st_mode))
    return refusal(request, "is no directory");
  removeStale(directory);
  Result<int> made = openNameless(request);
  if (!made)
    return made;
  Descriptor file(*made);
  if (Status prepared = prepare(file.get(), request); !prepared)
    return prepared.error();
  return file.release();
}

} // namespace ds::rt
