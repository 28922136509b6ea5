//===- Storage.cpp - Reading and writing a temporary file -----------------------------===//
//
// Past the page cache where the file system allows it (O_DIRECT), because that is how offloaded states move;
// else with the cache dropped before it is read. The first rank measures for the node.
//
//===---------------------------------------------------------------------------===//
#include "Context.h"
#include "ds/Support/Descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr uint64_t kBlock = uint64_t(1) << 20;

/// A file without a name: nothing is left of it, whatever happens.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &directory) {
    file = Descriptor(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
    direct = bool(file);
    if (!file)
      file = Descriptor(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file)
      return;
    std::string pattern = directory + "/ds-calibrate-XXXXXX";
    file = Descriptor(::mkstemp(pattern.data()));
    if (file)
      ::unlink(pattern.c_str());
  }
  int fd() const { return file.get(); }

  Descriptor file;
  bool direct = false; ///< past the page cache
};

/// Moves `bytes` from or to the start of the file, block by block.
bool move(const TemporaryFile &file, std::byte *memory, uint64_t bytes, bool writes) {
  for (uint64_t done = 0; done < bytes; done += kBlock) {
    const ssize_t moved = writes ? ::pwrite(file.fd(), memory + done, kBlock, static_cast<off_t>(done))
                                 : ::pread(file.fd(), memory + done, kBlock, static_cast<off_t>(done));
    if (moved != static_cast<ssize_t>(kBlock))
      return false;
  }
  return !writes || ::fdatasync(file.fd()) == 0;
}

struct Rates {
  Sample read, write;
};

Result<Rates> measureFile(Calibration &c, const TemporaryFile &file, uint64_t bytes) {
  auto *memory =
      reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(c.pool.data()) + 4095) / 4096 * 4096);
  SamplingOptions options{1, 3, 3, 0, {}};
  auto body = [&](bool writes) {
    return [&, writes](uint32_t) {
      if (!writes && !file.direct)
        ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
      if (move(file, memory, bytes, writes))
        return Status();
      return Status(Error{ExitCode::Io,
                          fmt::format("calibration: {}: {}", c.storageDirectory, std::strerror(errno)),
                          "give a directory with room in TMPDIR"});
    };
  };
  Result<Sample> write = measureRepeatedly(body(true), options, c.clock);
  if (!write)
    return write.error();
  Result<Sample> read = measureRepeatedly(body(false), options, c.clock);
  if (!read)
    return read.error();
  return Rates{*read, *write};
}

} // namespace

Status measureStorage(Calibration &c) {
  if (!c.leads())
    return {};
  if (!c.nvmeDirectory.empty())
    return tuneStorage(c);
  c.progress("storage in " + c.storageDirectory);
  const uint64_t bytes = (c.quick ? 2 : 48) * kBlock;
  struct statvfs system {};
  const TemporaryFile file(c.storageDirectory);
  const bool known = file.fd() >= 0 && ::statvfs(c.storageDirectory.c_str(), &system) == 0;
  const uint64_t room = known ? uint64_t(system.f_bavail) * system.f_frsize : 0;
  if (room < 2 * bytes) {
    c.progress("no room for a temporary file there: the description has no storage");
    return {};
  }
  Result<Rates> rates = measureFile(c, file, bytes);
  if (!rates) {
    c.progress(rates.error().message + ": the description has no storage");
    return {};
  }
  const std::string how = file.direct ? "; past the page cache" : "; through the page cache, synchronised";
  c.figures.count("nvme.bytes", static_cast<int64_t>(room),
                  "free where temporary files go: " + c.storageDirectory);
  c.figures.number("nvme.read_bytes_per_second", static_cast<double>(bytes) / rates->read.seconds,
                   c.provenance(rates->read.spread) + how);
  c.figures.number("nvme.write_bytes_per_second", static_cast<double>(bytes) / rates->write.seconds,
                   c.provenance(rates->write.spread) + how);
  return {};
}

} // namespace ds::rt
