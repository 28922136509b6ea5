//===- AppendedFile.cpp - A file that grows while a run goes on -----------------===//

#include "ds/Runtime/Files/AppendedFile.h"

#include "OutputPath.h"
#include "Text.h"
#include "WriteSignals.h"
#include "ds/Runtime/Files/StorageWatch.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

/// "log.<number>.jsonl" of "log.jsonl", in the same directory.
static std::string numbered(const std::string &path, unsigned number) {
  const size_t name = path.rfind('/') + 1, dot = path.rfind('.');
  const size_t end = dot == std::string::npos || dot <= name ? path.size() : dot;
  return path.substr(0, end) + "." + std::to_string(number) + path.substr(end);
}

/// Renames without replacing; 0 or errno.
static int renameAside(const std::string &from, const std::string &to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) // a file system that cannot
    return errno;
  if (link(from.c_str(), to.c_str()) != 0)
    return errno;
  return unlink(from.c_str()) == 0 ? 0 : errno;
}

/// Gives what an earlier run has left the first name that is free: "log.1.jsonl", "log.2.jsonl", ... Returns
/// it, or nothing where there is no such file.
static Result<std::string> moveAside(const std::string &path, const AppendedFile::Form &form) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
      standardStreamOf(info) >= 0)
    return std::string();
  const std::string file = resolveLinks(path);
  constexpr unsigned kMostLogs = 100000;
  int error = EEXIST;
  for (unsigned number = 1; error == EEXIST && number <= kMostLogs; ++number) {
    std::string aside = numbered(file, number);
    error = renameAside(file, aside);
    if (error == 0)
      return aside;
  }
  return ioError("move aside the earlier " + form.what, path, error, "name another one with " + form.option);
}

Result<AppendedFile> AppendedFile::open(const std::string &path, Form form, Warning warning) {
  if (!form.append) {
    Result<std::string> aside = moveAside(path, form);
    if (!aside)
      return aside.error();
    if (!aside->empty() && warning)
      warning("the earlier " + form.what + " " + quote(path) + " is now " + quote(*aside));
  }
  AppendedFile log;
  log.path = path;
  log.warning = std::move(warning);
  // Never O_RDWR: a pipe of which we are a reader ourselves would fill up and stop the run instead of
  // breaking.
  struct stat info;
  const int standard = stat(path.c_str(), &info) == 0 ? standardStreamOf(info) : -1;
  log.file =
      Descriptor(standard >= 0 ? fcntl(standard, F_DUPFD_CLOEXEC, 3)
                               : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.file)
    return ioError("write the " + form.what, path, errno);
  if (form.append && form.hasLines)
    log.dropTornLine();
  log.form = std::move(form);
  return log;
}

/// A run that was killed while it wrote leaves half a line, which no reader could parse.
void AppendedFile::dropTornLine() {
  struct stat info;
  const int fd = file.get();
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return;
  char tail[8192]; // a line is a few hundred bytes
  off_t begin = info.st_size > off_t(sizeof(tail)) ? info.st_size - off_t(sizeof(tail)) : 0;
  const Descriptor reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ssize_t count = pread(reader.get(), tail, sizeof(tail), begin);
  size_t newline = std::string_view(tail, count > 0 ? size_t(count) : 0).rfind('\n');
  if (count < 0 || (newline == std::string_view::npos && begin != 0))
    torn = true; // cannot be seen, or is not ours: the next line starts on a line of its own
  else if (newline == std::string_view::npos)
    torn = ftruncate(fd, 0) != 0;
  else if (begin + off_t(newline) + 1 != info.st_size)
    torn = ftruncate(fd, begin + off_t(newline) + 1) != 0;
}

void AppendedFile::giveUp(int errorNumber) {
  if (errorNumber == EPIPE)
    file = Descriptor();
  if (std::exchange(warned, true) || !warning)
    return;
  warning(ioError("write the " + form.what, path, errorNumber).message + "; training continues" +
          (errorNumber == EPIPE ? " without it" : ", lines will be missing"));
}

void AppendedFile::write(const std::string &bytes) {
  if (!file || (torn && !form.hasLines)) // behind half a record no reader finds the next
    return;
  const std::string line = (torn ? "\n" : "") + bytes;
  BlockWriteSignals guard;
  const StorageOperation writing("writing", path);
  size_t written = 0;
  while (written < line.size()) {
    ssize_t count = ::write(file.get(), line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      int failure = count < 0 ? errno : ENOSPC;
      struct stat info;
      bool regular = fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
      if (written > 0)
        torn = !regular || ftruncate(file.get(), info.st_size - off_t(written)) != 0;
      return giveUp(failure);
    }
    written += size_t(count);
  }
  torn = false;
}
