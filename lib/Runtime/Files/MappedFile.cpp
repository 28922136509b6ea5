//===- MappedFile.cpp - A file as read-only memory -----------------------------===//

#include "ds/Runtime/Files/MappedFile.h"

#include "OpenFile.h"
#include "Text.h"
#include "ds/Runtime/Files/StorageWatch.h"

#include <cerrno>
#include <sys/stat.h>
#include <utility>

using namespace ds;
using namespace ds::rt;

static int64_t modificationTime(const struct stat &info) {
  return int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
}

Result<MappedFile> MappedFile::adopt(int fd, std::string name) {
  MappedFile file;
  file.file = Descriptor(fd);
  file.name = std::move(name);
  struct stat info;
  if (fstat(fd, &info) != 0)
    return ioError("read", file.name, errno);
  if (!S_ISREG(info.st_mode))
    return Error{ExitCode::Io,
                 "cannot read " + quote(file.name) + ": expects a regular file, but got a " +
                     (S_ISDIR(info.st_mode) ? "directory" : "pipe or device"),
                 "copy the contents into a file first"};
  file.modifiedNs = modificationTime(info);
  if (info.st_size == 0) // mmap refuses an empty range
    return file;
  file.mapping = Mapping(size_t(info.st_size), PROT_READ, MAP_SHARED, fd);
  if (!file.mapping)
    return ioError("map", file.name, errno);
  return file;
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  const StorageOperation opening("opening", path);
  Result<int> fd = openFile(path);
  return fd ? adopt(*fd, path) : Result<MappedFile>(fd.error());
}

Result<MappedFile> MappedFile::openBeneath(const std::string &directory, std::string_view name) {
  Result<int> fd = openFileBeneath(directory, name);
  return fd ? adopt(*fd, directory + "/" + std::string(name)) : Result<MappedFile>(fd.error());
}

void MappedFile::forget() const {
  if (mapping)
    madvise(mapping.data(), mapping.size(),
            MADV_DONTNEED); // a shared mapping of a file that is never written to: nothing is lost
}

Status MappedFile::checkUnchanged() const {
  struct stat info;
  if (fstat(file.get(), &info) != 0)
    return ioError("read", name, errno);
  if (size_t(info.st_size) != mapping.size() || modificationTime(info) != modifiedNs)
    return Error{ExitCode::Io,
                 quote(name) + ": was changed while it was being read (" + std::to_string(mapping.size()) +
                     " bytes before, " + std::to_string(info.st_size) + " now)",
                 "write a new file and rename it over the old one instead"};
  return {};
}
