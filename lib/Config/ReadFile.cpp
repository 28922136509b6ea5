//===- ReadFile.cpp - All bytes of a small text file --------------------------------===//
#include "ReadFile.h"
#include "Parser.h"
#include "ds/Support/Descriptor.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::config {

Result<std::string> readFile(const std::string &path, const std::string &hint) {
  auto failed = [&](const std::string &what) { return Error{ExitCode::Io, path + ": " + what, hint}; };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return failed(std::strerror(errno));
  struct stat info;
  bool regular = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  std::string text;
  ssize_t got = 0;
  char buffer[1 << 14];
  while (regular && text.size() <= kMaxConfigBytes &&
         (got = ::read(file.get(), buffer, sizeof(buffer))) != 0) {
    if (got < 0 && errno != EINTR)
      break;
    text.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
  }
  if (!regular)
    return failed("not a regular file");
  if (got < 0)
    return failed(std::strerror(errno));
  return text;
}

} // namespace ds::config
