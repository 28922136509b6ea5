//===- ProgramIo.cpp - Moves .dsx files between memory and disk ----------------===//
//
// A program is written under a temporary name in the same directory, synchronised and renamed, so that
// whoever opens the final name sees either the old program or the whole new one.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/ProgramFile.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

Error ioError(const std::string &path, const char *verb, int code, const char *hint = "") {
  return Error{ExitCode::Io, fmt::format("{}: cannot {}: {}", path, verb, std::strerror(code)), hint};
}

/// A descriptor that is closed on every path.
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
};

bool writeAll(int fd, const uint8_t *data, size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(fd, data, size);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

/// Writes and synchronises the temporary file; renaming is the caller's.
Status writeTemporary(File &file, const std::vector<uint8_t> &bytes, const std::string &path) {
  if (::fchmod(file.fd, 0644) != 0 || !writeAll(file.fd, bytes.data(), bytes.size()) || ::fsync(file.fd) != 0)
    return ioError(path, "write", errno, "free some space or choose another file");
  return {};
}

} // namespace

Status writeProgram(const Program &program, const std::string &path) {
  if (Status status = verifyProgram(program); !status)
    return Error{ExitCode::Internal, "refusing to write an invalid program: " + status.error().message, ""};
  Result<std::vector<uint8_t>> bytes = serializeProgram(program);
  if (!bytes)
    return bytes.error();
  std::string temporary = path + ".XXXXXX";
  File file{::mkstemp(temporary.data())};
  if (file.fd < 0)
    return ioError(path, "create", errno, "check that the directory exists and is writable");
  Status status = writeTemporary(file, *bytes, path);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = ioError(path, "rename to", errno);
  if (!status)
    ::unlink(temporary.c_str());
  return status;
}

Result<Program> readProgram(const std::string &path) {
  File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
    return ioError(path, "open", errno, "give a .dsx file made by ds-opt --emit=program");
  if (!S_ISREG(info.st_mode))
    return Error{ExitCode::Io, path + ": not a regular file",
                 "give a .dsx file made by ds-opt --emit=program"};
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return ioError(path, "read", errno);
    if (count == 0)
      break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return parseProgram(bytes, path);
}

} // namespace ds::rt
