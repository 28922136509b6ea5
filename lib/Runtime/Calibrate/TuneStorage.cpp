//===- TuneStorage.cpp - How the disk of --nvme is best driven -----------------------===//
//
// Sequential writes and reads of a file as a run has it, for blocks of 128 KiB to 8 MiB and 1 to 64 requests
// under way. Rates rise with both until the disk is full, and memory that must be staged rises as well: of
// what is within a few percent of the best, the least under way counts.
//
//===---------------------------------------------------------------------------===//
#include "Context.h"

#include "Storage/StorageFile.h"
#include "ds/Runtime/Storage/Storage.h"
#include "ds/Support/Descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sys/statvfs.h>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr double kNearBest = 0.97;

/// One way to drive the disk, and what it takes.
struct Setting {
  uint64_t blockBytes;
  uint32_t depth;
  double writeSeconds = 0, readSeconds = 0;

  uint64_t underWay() const { return blockBytes * depth; }
  double seconds() const { return writeSeconds + readSeconds; }
};

class Tuner {
public:
  Tuner(Calibration &c, int file, uint64_t bytes)
      : c(c), file(file), bytes(bytes),
        memory(reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(c.pool.data()) + kStorageUnit - 1) /
                                             kStorageUnit * kStorageUnit)) {}

  /// The figures, in the order of their keys.
  Status run(uint64_t room) {
    std::vector<Setting> all;
    for (uint32_t depth = 1; depth <= 64; depth *= c.quick ? 8 : 2)
      for (uint64_t block = uint64_t(128) << 10; block <= uint64_t(8) << 20; block *= c.quick ? 8 : 2)
        if (block * depth <= bytes) {
          Setting setting{block, depth};
          for (const bool writes : {true, false}) {
            const Result<Sample> sample = measure(setting, writes, {c.quick ? 0u : 1u, 1, 1, 0, {}});
            if (!sample)
              return sample.error();
            (writes ? setting.writeSeconds : setting.readSeconds) = sample->seconds;
          }
          all.push_back(setting);
        }
    const Setting best = choose(all);
    const Result<Sample> write = measure(best, true, {1, 3, 3, 0, {}});
    const Result<Sample> read = write ? measure(best, false, {1, 3, 3, 0, {}}) : write;
    if (!read)
      return read.error();
    addFigures(best, *read, *write, room);
    return {};
  }

private:
  void addFigures(const Setting &best, const Sample &read, const Sample &write, uint64_t room) {
    const std::string how = fmt::format("; {} under way, past the page cache", best.depth);
    c.figures.count("nvme.bytes", static_cast<int64_t>(room), "free in " + c.nvmeDirectory);
    c.figures.number("nvme.read_bytes_per_second", static_cast<double>(bytes) / read.seconds,
                     c.provenance(read.spread) + how);
    c.figures.number("nvme.write_bytes_per_second", static_cast<double>(bytes) / write.seconds,
                     c.provenance(write.spread) + how);
    c.figures.count("nvme.block_bytes", static_cast<int64_t>(best.blockBytes),
                    "aio.block_size that reaches that");
    c.figures.count("nvme.queue_depth", best.depth, "aio.queue_depth that does");
  }

  static Setting choose(const std::vector<Setting> &all) {
    const auto seconds = [](const Setting &a, const Setting &b) { return a.seconds() < b.seconds(); };
    const double least = std::min_element(all.begin(), all.end(), seconds)->seconds();
    std::optional<Setting> best;
    for (const Setting &each : all)
      if (each.seconds() * kNearBest <= least && (!best || each.underWay() < best->underWay()))
        best = each;
    return *best;
  }

  Result<Sample> measure(const Setting &setting, bool writes, const SamplingOptions &options) {
    StorageSettings settings;
    settings.blockBytes = setting.blockBytes;
    std::unique_ptr<StorageQueue> queue = openUring({&file, 1}, setting.depth);
    if (!queue) {
      Result<std::unique_ptr<StorageQueue>> threads = openStorageThreads({&file, 1}, setting.depth);
      if (!threads)
        return threads.error();
      queue = std::move(*threads);
    }
    return measureRepeatedly(
        [&](uint32_t) -> Status {
          const TransferOutcome outcome = transferBlocks(*queue, settings, writes, 0, memory, bytes);
          if (outcome.error == 0)
            return {};
          return Error{ExitCode::Io,
                       fmt::format("calibration: {}: {}", c.nvmeDirectory, std::strerror(outcome.error)),
                       "name a directory on another disk with --nvme"};
        },
        options, c.clock);
  }

  Calibration &c;
  int file;
  uint64_t bytes; ///< of the file
  std::byte *memory;
};

} // namespace

Status tuneStorage(Calibration &c) {
  c.progress("storage in " + c.nvmeDirectory);
  const uint64_t bytes = (c.quick ? uint64_t(8) : uint64_t(96)) << 20;
  const Result<int> made = makeStorageFile({c.nvmeDirectory, c.group->rank(), {{0, bytes}}});
  if (!made)
    return made.error();
  const Descriptor file(*made);
  struct statvfs system {};
  const uint64_t room =
      ::fstatvfs(file.get(), &system) == 0 ? uint64_t(system.f_bavail) * system.f_frsize + bytes : bytes;
  return Tuner(c, file.get(), bytes).run(room);
}

} // namespace ds::rt
