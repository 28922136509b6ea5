//===- Storage.h - What a rank keeps on NVMe -------------------------------------===//
//
// One file for each rank holds the storage arena of its program, or two, where parameters have a disk of
// their own (StorageMap.h). A file is made with all its space before the first step and has no name from then
// on, so that nothing is left of it however the run ends. Bytes move between files and aligned memory past
// the system's cache, many requests at a time: by io_uring where the system allows it, else by threads.
//
// A transfer is cut into blocks of `StorageSettings::blockBytes`; what a disk does of a block only in part is
// asked for again, an I/O error once more, and then the transfer fails: nobody computes with what was not
// read. With `verify` a digest of each MiB that was written is kept, and held against what is read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_STORAGE_STORAGE_H
#define DS_RUNTIME_STORAGE_STORAGE_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Runtime/Storage/StorageMap.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// A read or write of one block. Offset, size and address are multiples of kStorageUnit.
struct StorageRequest {
  bool writes = false;
  uint64_t offset = 0; ///< in the file
  std::byte *data = nullptr;
  uint32_t bytes = 0;
  uint32_t tag = 0;  ///< comes back with the completion
  uint32_t file = 0; ///< of the queue's
};

/// How a request has ended.
struct StorageCompletion {
  uint32_t tag = 0;
  int64_t result = 0; ///< bytes that were moved, or -errno
};

/// Requests under way on one file or several: the system, or a test in its place. Used by one thread at a
/// time.
class StorageQueue {
public:
  virtual ~StorageQueue() = default;

  /// Requests that may be under way at once.
  virtual uint32_t depth() const = 0;
  /// Starts requests, from the first on; returns how many, or -errno if not even the first. At most `depth`
  /// are under way.
  virtual int64_t submit(std::span<const StorageRequest> requests) = 0;
  /// Waits until a request has ended, and tells of as many as have; returns their number, or -errno. Requires
  /// that one is under way.
  virtual int64_t wait(std::span<StorageCompletion> ended) = 0;
  /// Memory that requests will often name: told once, so that it need not be looked up each time. Returns 0,
  /// or the errno why requests will go without.
  virtual int useMemory(std::span<const std::span<std::byte>> memory) = 0;
  /// "io_uring of depth 32".
  virtual std::string describe() const = 0;
};

/// The queue of `files`, by io_uring; null where the system has none or does not allow it.
std::unique_ptr<StorageQueue> openUring(std::span<const int> files, uint32_t depth);
/// The same by threads that each move a block at a time. Fails with ExitCode::Device where the system allows
/// no thread.
Result<std::unique_ptr<StorageQueue>> openStorageThreads(std::span<const int> files, uint32_t depth);

/// How a transfer has ended.
struct TransferOutcome {
  int error = 0;       ///< errno; 0: all bytes were moved
  uint64_t offset = 0; ///< of the block that failed
};

/// Moves [offset, offset + bytes) of the first file from or to `data` through `queue`, in blocks; all
/// multiples of kStorageUnit. Nothing is under way any more when it returns, unless the queue itself has
/// failed.
TransferOutcome transferBlocks(StorageQueue &queue, const StorageSettings &settings, bool writes,
                               uint64_t offset, std::byte *data, uint64_t bytes);

/// Bytes of the arena that a message calls by a name.
struct StorageRegion {
  uint64_t offset = 0, bytes = 0;
  std::string name;
};

struct StorageOptions {
  std::string directory;
  std::string parameterDirectory = {}; ///< of file 1 of `map`
  StorageMap map = {};                 ///< of the arena; neither file has nothing of it
  uint64_t bytes = 0;                  ///< of the arena
  uint32_t rank = 0;                   ///< for the file's name and messages
  StorageSettings settings;
  bool verify = false;  ///< keep digests
  bool threads = false; ///< no io_uring
  std::vector<StorageRegion> regions = {};
  std::function<void(const std::string &)> warn = {}; ///< one line a call; empty: nobody is told
};

/// What has gone through a storage.
struct StorageTotals {
  uint64_t bytesRead = 0, bytesWritten = 0;
  double seconds = 0; ///< for which something was under way
};

/// Addresses that stand for the bytes of a storage. No memory: whoever touches it ends.
class StorageAddresses {
public:
  StorageAddresses() = default;
  StorageAddresses(const StorageAddresses &) = delete;
  ~StorageAddresses();

  /// Takes so many. Fails with ExitCode::DoesNotFit where the system has no room for them.
  Status reserve(uint64_t count);

  std::byte *base() const { return first; }
  bool holds(const std::byte *address) const { return address >= first && address < first + bytes; }
  uint64_t offsetOf(const std::byte *address) const { return static_cast<uint64_t>(address - first); }

private:
  std::byte *first = nullptr;
  uint64_t bytes = 0;
};

class StorageDigests;
class TransferSet;

/// The storage of one rank. Safe to be used from several threads.
class Storage {
public:
  /// Makes the file in each directory. Fails with ExitCode::DoesNotFit where there is no room for it,
  /// and with ExitCode::Io where the directory is missing, cannot be written or is no storage: memory
  /// (tmpfs), or without direct access.
  static Result<std::unique_ptr<Storage>> open(const StorageOptions &options);
  /// Over a queue that is there already: for tests. No directory of `options` is looked at.
  static Result<std::unique_ptr<Storage>> over(std::unique_ptr<StorageQueue> queue,
                                               const StorageOptions &options);
  ~Storage();

  /// Offset, bytes and memory are multiples of kStorageUnit, inside the arena.
  Status read(uint64_t offset, std::byte *to, uint64_t bytes);
  Status write(uint64_t offset, const std::byte *from, uint64_t bytes);

  /// The same, begun: the memory is the storage's until `finish` says how it went. Returns a number. What is
  /// under way and touches the same bytes, of the arena or of memory, is waited for: the disk keeps no order.
  Result<uint64_t> begin(bool writes, uint64_t offset, std::byte *memory, uint64_t bytes);
  /// Waits until some request has ended; true when transfer `id`, which was begun, has nothing to wait for.
  bool advance(uint64_t id);
  Status finish(uint64_t id);

  /// Calls `body` with a copy of any bytes of the arena; `change` then writes what it left there.
  Status inspect(uint64_t offset, uint64_t bytes, const std::function<Status(const std::byte *copy)> &body);
  Status change(uint64_t offset, uint64_t bytes, const std::function<Status(std::byte *copy)> &body);

  /// Where transfers will come from and go to. A system that cannot keep it locked is told of in one line.
  void useMemory(std::span<const std::span<std::byte>> memory);

  /// Addresses that stand for the arena's bytes.
  const StorageAddresses &addresses() const { return range; }

  StorageTotals totals() const;
  /// "'/nvme', io_uring of depth 8, blocks of 1 MiB"; of two directories "'/nvme0' and '/nvme1', ...".
  std::string describe() const;

private:
  explicit Storage(const StorageOptions &options);
  Status check(uint64_t offset, const std::byte *memory, uint64_t bytes) const;
  Status makeFiles();
  Status start(std::unique_ptr<StorageQueue> own);
  Status compare(uint64_t offset, const std::byte *data, uint64_t bytes) const;

  StorageOptions options;
  std::vector<int> files; ///< by number in the map
  std::unique_ptr<StorageQueue> queue;
  std::unique_ptr<TransferSet> set; ///< on it
  StorageAddresses range;
  mutable std::mutex mutex;                      ///< guards what follows, and the queue
  const std::unique_ptr<StorageDigests> digests; ///< null without `verify`
  /// A transfer that was begun.
  struct Begun {
    bool writes;
    uint64_t offset;
    const std::byte *memory;
    uint64_t bytes;
    std::optional<Status> found = {}; ///< by digests, where they were looked at before `finish`

    bool conflictsWith(const Begun &other) const;
  };
  void settle(uint64_t id, Begun &transfer);
  std::map<uint64_t, Begun> begun;
  int64_t busySince = 0; ///< while there is one
  StorageTotals sums;
};

} // namespace ds::rt

#endif // DS_RUNTIME_STORAGE_STORAGE_H
