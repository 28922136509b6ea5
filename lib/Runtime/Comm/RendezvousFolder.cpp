//===- RendezvousFolder.cpp - Where the ranks of one launcher meet ----------------===//
//
// Between the making of a folder and its lock another launcher may take it for an abandoned one. It removes
// the folder while it holds the lock; so whoever gets the lock looks whether the folder is still there, and
// makes another if not.
//
//===---------------------------------------------------------------------------===//
#include "RendezvousFolder.h"

#include "Control/Card.h"
#include "SmallFile.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace ds::rt {
namespace {

constexpr std::string_view kPrefix = "ds-ranks-", kRandomPart = "XXXXXX"; ///< the latter for mkdtemp
constexpr const char *kHostFile = "host"; ///< inside: the name of the launcher's machine

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// The names in a directory, but for "." and "..".
std::vector<std::string> namesIn(int directory) {
  std::vector<std::string> names;
  Socket own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR *)> list(own ? ::fdopendir(own.get()) : nullptr, ::closedir);
  if (list)
    own.release();
  while (const dirent *entry = list ? ::readdir(list.get()) : nullptr)
    if (const std::string_view name = entry->d_name; name != "." && name != "..")
      names.emplace_back(name);
  return names;
}

/// Removes the folder `path`, relative to `directory`, with the files in it; it is open as `folder`. One with
/// folders inside is none of ours, and stays.
void removeFolder(int folder, int directory, const std::string &path) {
  for (const std::string &name : namesIn(folder))
    ::unlinkat(folder, name.c_str(), 0);
  ::unlinkat(directory, path.c_str(), AT_REMOVEDIR);
}

/// Whether `path` still names the open folder.
bool isStill(int folder, int directory, const std::string &path) {
  struct stat open, named;
  return ::fstat(folder, &open) == 0 &&
         ::fstatat(directory, path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

void removeIfAbandoned(int directory, const std::string &name) {
  const Socket folder(::openat(directory, name.c_str(), kOpenFolder));
  struct stat status;
  if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid() ||
      (status.st_mode & 07777) != 0700)
    return;
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !isStill(folder.get(), directory, name))
    return;
  const SmallFile host = readSmallFile(folder.get(), kHostFile, ::geteuid());
  if (host.refusal.empty() && (host.text.empty() || host.text == hostName()))
    removeFolder(folder.get(), directory, name);
}

std::string temporaryDirectory() {
  const char *directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

Error cannotMake(const std::string &path) {
  const bool chosen = temporaryDirectory() != "/tmp";
  return Error{ExitCode::Io,
               fmt::format("cannot make the folder '{}' in which the ranks meet{}: {}", path,
                           chosen ? " (TMPDIR)" : "", std::strerror(errno)),
               "set TMPDIR to a directory that exists and can be written"};
}

} // namespace

void removeAbandonedFolders(const std::string &directory) {
  const Socket open(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open)
    return;
  for (const std::string &name : namesIn(open.get()))
    if (name.size() == kPrefix.size() + kRandomPart.size() && name.starts_with(kPrefix))
      removeIfAbandoned(open.get(), name);
}

Result<RendezvousFolder> RendezvousFolder::create() {
  const std::string directory = temporaryDirectory();
  removeAbandonedFolders(directory);
  const std::string pattern = fmt::format("{}/{}{}", directory, kPrefix, kRandomPart);
  while (true) {
    std::string path = pattern;
    if (!::mkdtemp(path.data()))
      return cannotMake(pattern);
    Socket lock(::open(path.c_str(), kOpenFolder));
    if (!lock && errno == ENOENT) // taken for an abandoned one
      continue;
    if (!lock) {
      Error error = cannotMake(path);
      ::rmdir(path.c_str());
      return error;
    }
    while (::flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
    } // else a file system that has no locks: nobody else has one either
    const std::string host = hostName();
    const Socket file(::openat(lock.get(), kHostFile, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    const bool written =
        file && ::write(file.get(), host.data(), host.size()) == static_cast<ssize_t>(host.size());
    const int failure = errno;
    if (!isStill(lock.get(), AT_FDCWD, path))
      continue;
    RendezvousFolder made(path, std::move(lock));
    errno = failure;
    return written ? Result<RendezvousFolder>(std::move(made)) : Result<RendezvousFolder>(cannotMake(path));
  }
}

RendezvousFolder::~RendezvousFolder() {
  if (lock)
    removeFolder(lock.get(), AT_FDCWD, folder);
}

} // namespace ds::rt
