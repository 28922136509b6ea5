//===- OpenFile.cpp - Descriptors of files to read ------------------------------===//

#include "OpenFile.h"

#include "Text.h"
#include "ds/Support/Descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;

Result<int> ds::rt::openFile(const std::string &path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever; it means nothing for a regular
  // file.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return ioError("open", path, errno);
  return fd;
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

Result<int> ds::rt::openFileBeneath(const std::string &directory, std::string_view name) {
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
  const Descriptor within(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!within)
    return ioError("open", directory, errno);
  std::string text(name);
  int fd = openBeneathDirectory(within.get(), text.c_str());
  int failure = errno;
  std::string path = directory + "/" + text;
  if (fd < 0 && (failure == EXDEV || failure == ELOOP))
    return Error{ExitCode::Corrupt, quote(path) + ": is a link that leads out of its directory",
                 "put the file itself there"};
  if (fd < 0)
    return ioError("open", path, failure);
  return fd;
}
