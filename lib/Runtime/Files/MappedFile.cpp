//===- MappedFile.cpp - A file as read-only memory -----------------------------===//

#include "ds/Runtime/Files/MappedFile.h"

#include "OpenFile.h"
#include "Text.h"
#include "ds/Runtime/Files/StorageWatch.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/stat.h>
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
  const StorageOperation opening("opening", path);
  Result<int> fd = openFile(path);
  return fd ? adopt(*fd, path) : Result<MappedFile>(fd.error());
}

Result<MappedFile> MappedFile::openBeneath(const std::string &directory, std::string_view name) {
  Result<int> fd = openFileBeneath(directory, name);
  return fd ? adopt(*fd, directory + "/" + std::string(name)) : Result<MappedFile>(fd.error());
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

void MappedFile::forget() const {
  if (address)
    madvise(address, size,
            MADV_DONTNEED); // a shared mapping of a file that is never written to: nothing is lost
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
