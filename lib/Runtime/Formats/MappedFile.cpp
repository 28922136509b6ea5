//===- MappedFile.cpp - A file as read-only memory -----------------------------===//

#include "ds/Runtime/Formats/MappedFile.h"

#include "Text.h"
#include "ds/Runtime/Formats/StorageWatch.h"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

static int64_t modificationTime(const struct stat &info) {
  return int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
}

Result<MappedFile> MappedFile::adopt(int fd, std::string name) {
  MappedFile file;
  file.fd = fd; // closed by the destructor on every return
  file.name = std::move(name);
  struct stat info;
  if (fstat(fd, &info) != 0)
    return ioError("read", file.name, errno);
  if (!S_ISREG(info.st_mode))
    return Error{ExitCode::Io,
                 "cannot read " + quote(file.name) + ": expects a regular file, but got a " +
                     (S_ISDIR(info.st_mode) ? "directory" : "pipe or device"),
                 "copy the contents into a file first"};
  file.size = size_t(info.st_size);
  file.modifiedNs = modificationTime(info);
  if (file.size == 0) // mmap refuses an empty range
    return file;
  void *address = mmap(nullptr, file.size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED)
    return ioError("map", file.name, errno);
  file.address = address;
  return file;
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever; it means nothing for a regular
  // file.
  const StorageOperation opening("opening", path);
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return ioError("open", path, errno);
  return adopt(fd, path);
}

/// Opens `name` below `directoryFd` without following links out of it. Where the kernel (or a sandbox) does
/// not know openat2, no link is followed at all.
static int openBeneathDirectory(int directoryFd, const char *name) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int fd = int(syscall(SYS_openat2, directoryFd, name, &how, sizeof(how)));
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    fd = openat(directoryFd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  return fd;
}

Result<MappedFile> MappedFile::openBeneath(const std::string &directory, std::string_view name) {
  constexpr size_t kLongestName = 255;
  bool plain = !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
               name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
  if (!plain)
    return Error{ExitCode::Corrupt,
                 quote(directory) +
                     ": expects the name of a file in this directory, of at most 255 bytes and "
                     "without '/', but got " +
                     quote(name),
                 "the index may name only files that lie beside it"};
  int directoryFd = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directoryFd < 0)
    return ioError("open", directory, errno);
  std::string text(name);
  int fd = openBeneathDirectory(directoryFd, text.c_str());
  int failure = errno;
  close(directoryFd);
  std::string path = directory + "/" + text;
  if (fd < 0 && (failure == EXDEV || failure == ELOOP))
    return Error{ExitCode::Corrupt, quote(path) + ": is a link that leads out of its directory",
                 "put the file itself there"};
  if (fd < 0)
    return ioError("open", path, failure);
  return adopt(fd, std::move(path));
}

MappedFile::MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(address, other.address);
  std::swap(size, other.size);
  std::swap(fd, other.fd);
  std::swap(modifiedNs, other.modifiedNs);
  return *this;
}

MappedFile::~MappedFile() {
  if (address)
    munmap(address, size);
  if (fd >= 0)
    close(fd);
}

Status MappedFile::checkUnchanged() const {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return ioError("read", name, errno);
  if (size_t(info.st_size) != size || modificationTime(info) != modifiedNs)
    return Error{ExitCode::Io,
                 quote(name) + ": was changed while it was being read (" + std::to_string(size) +
                     " bytes before, " + std::to_string(info.st_size) + " now)",
                 "write a new file and rename it over the old one instead"};
  return {};
}
