//===- Storage.cpp - What a rank keeps on NVMe -------------------------------------===//
#include "ds/Runtime/Storage/Storage.h"

#include "Files/AlignedBlock.h"
#include "Files/Text.h"
#include "Process/Clock.h"
#include "StorageDigests.h"
#include "StorageFile.h"
#include "StorageNames.h"
#include "TransferSet.h"
#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Support/Align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr uint64_t kMostUnderWay = 1024, kMostThreads = 64;

/// Threads where the system has no io_uring for us, or nobody wants it.
Result<std::unique_ptr<StorageQueue>> openQueue(std::span<const int> files, const StorageOptions &options) {
  const uint64_t requests =
      uint64_t(std::max(options.settings.queueDepth, 1u)) * std::max(options.settings.parallelism, 1u);
  if (!options.threads)
    if (auto ring = openUring(files, static_cast<uint32_t>(std::min(requests, kMostUnderWay))))
      return ring;
  return openStorageThreads(files, static_cast<uint32_t>(std::min(requests, kMostThreads)));
}

} // namespace

Storage::Storage(const StorageOptions &options)
    : options(options), digests(options.verify ? std::make_unique<StorageDigests>() : nullptr) {}

Storage::~Storage() {
  for (const auto &[id, transfer] : begun) // memory that others are about to free
    set->finish(id);
  set.reset();
  queue.reset(); // before the files that it works on
  for (const int file : files)
    ::close(file);
}

Status Storage::makeFiles() {
  StorageNeighbour neighbour;
  for (uint32_t number = 0; number < options.map.files(); ++number) {
    StorageFileRequest request;
    request.directory = number == 0 ? options.directory : options.parameterDirectory;
    request.rank = options.rank;
    request.ranges = options.map.rangesOf(number, options.bytes);
    request.option = number == 0 ? "--nvme" : "--nvme-parameters";
    request.neighbour = neighbour;
    const Result<int> file = makeStorageFile(request);
    if (!file)
      return file.error();
    files.push_back(*file);
    neighbour = {*file, request.directory, bytesOf(request.ranges)};
  }
  return {};
}

Status Storage::start(std::unique_ptr<StorageQueue> own) {
  queue = std::move(own);
  set = std::make_unique<TransferSet>(*queue, options.settings, options.map);
  return range.reserve(options.bytes);
}

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions &options) {
  std::unique_ptr<Storage> storage(new Storage(options));
  if (Status made = storage->makeFiles(); !made)
    return made.error();
  Result<std::unique_ptr<StorageQueue>> queue = openQueue(storage->files, options);
  if (!queue)
    return queue.error();
  if (Status started = storage->start(std::move(*queue)); !started)
    return started.error();
  return storage;
}

Result<std::unique_ptr<Storage>> Storage::over(std::unique_ptr<StorageQueue> queue,
                                               const StorageOptions &options) {
  std::unique_ptr<Storage> storage(new Storage(options));
  if (Status started = storage->start(std::move(queue)); !started)
    return started.error();
  return storage;
}

void Storage::useMemory(std::span<const std::span<std::byte>> memory) {
  const std::lock_guard lock(mutex);
  uint64_t bytes = 0;
  for (const std::span<std::byte> &each : memory)
    bytes += each.size();
  if (const int error = memory.empty() ? 0 : queue->useMemory(memory); error != 0 && options.warn)
    options.warn(
        fmt::format("storage {}: {} of staging memory are not registered ({}): transfers go without; "
                    "a limit of locked memory (ulimit -l) as large would allow it",
                    spellDirectories(options), fmt::format("{} bytes", bytes), std::strerror(error)));
}

/// Programs are verified when they are read: what fails here is a mistake of ours.
Status Storage::check(uint64_t offset, const std::byte *memory, uint64_t bytes) const {
  const auto bits = offset | bytes | reinterpret_cast<uintptr_t>(memory);
  if (bits % kStorageUnit == 0 && bytes <= options.bytes &&
      offset <= alignTo(options.bytes, kStorageUnit) - bytes)
    return {};
  return Error{ExitCode::Internal,
               fmt::format("storage {}: {} bytes at offset {} and address {} of an arena of {}",
                           quote(directoryOf(options, offset)), bytes, offset, fmt::ptr(memory),
                           options.bytes),
               ""};
}

/// Whether one of the two changes what the other moves: a write the arena, a read its memory.
bool Storage::Begun::conflictsWith(const Begun &other) const {
  const bool sharesArena = offset < other.offset + other.bytes && other.offset < offset + bytes;
  const bool sharesMemory = memory < other.memory + other.bytes && other.memory < memory + bytes;
  return (sharesArena && (writes || other.writes)) || (sharesMemory && (!writes || !other.writes));
}

/// Waits until `transfer` has moved all its bytes. What was read is compared now: others are about to change
/// it.
void Storage::settle(uint64_t id, Begun &transfer) {
  const StorageOperation moving("waiting for", directoryOf(options, transfer.offset));
  while (!set->isDone(id))
    set->advance();
  if (!transfer.writes && !transfer.found)
    transfer.found = compare(transfer.offset, transfer.memory, transfer.bytes);
}

Result<uint64_t> Storage::begin(bool writes, uint64_t offset, std::byte *memory, uint64_t bytes) {
  if (Status status = check(offset, memory, bytes); !status)
    return status.error();
  const std::lock_guard lock(mutex);
  const Begun next = {writes, offset, memory, bytes};
  for (auto &[id, other] : begun)
    if (next.conflictsWith(other))
      settle(id, other);
  if (writes && digests)
    digests->note(offset, memory, bytes);
  if (begun.empty())
    busySince = nowNs();
  const uint64_t id = set->begin(writes, offset, memory, bytes);
  begun[id] = next;
  return id;
}

bool Storage::advance(uint64_t id) {
  const std::lock_guard lock(mutex);
  const StorageOperation moving("waiting for", directoryOf(options, begun.at(id).offset));
  if (!set->isDone(id))
    set->advance();
  return set->isDone(id);
}

Status Storage::finish(uint64_t id) {
  const std::lock_guard lock(mutex);
  const Begun done = begun.at(id);
  const StorageOperation moving(done.writes ? "writing to" : "reading from",
                                directoryOf(options, done.offset));
  const TransferOutcome outcome = set->finish(id);
  begun.erase(id);
  if (begun.empty())
    sums.seconds += static_cast<double>(nowNs() - busySince) * 1e-9;
  (done.writes ? sums.bytesWritten : sums.bytesRead) += done.bytes;
  if (outcome.error != 0) {
    return Error{ExitCode::Io,
                 fmt::format("storage {}: cannot {} the block at {}: {}",
                             quote(directoryOf(options, outcome.offset)), done.writes ? "write" : "read",
                             spellPlace(options, outcome.offset), std::strerror(outcome.error)),
                 "the disk may be failing: resume from the last checkpoint, elsewhere"};
  }
  if (done.writes)
    return {};
  return done.found ? *done.found : compare(done.offset, done.memory, done.bytes);
}

Status Storage::read(uint64_t offset, std::byte *to, uint64_t bytes) {
  const Result<uint64_t> id = begin(false, offset, to, bytes);
  return id ? finish(*id) : Status(id.error());
}

Status Storage::write(uint64_t offset, const std::byte *from, uint64_t bytes) {
  const Result<uint64_t> id = begin(true, offset, const_cast<std::byte *>(from), bytes);
  return id ? finish(*id) : Status(id.error());
}

/// What was read is what was written last, as far as there are digests.
Status Storage::compare(uint64_t offset, const std::byte *data, uint64_t bytes) const {
  if (!digests)
    return {};
  const std::optional<StorageDigests::Piece> damaged = digests->findDamaged(offset, data, bytes);
  if (!damaged)
    return {};
  return Error{ExitCode::Io,
               fmt::format("storage {}: {} bytes at {} do not read as they were written",
                           quote(directoryOf(options, damaged->offset)), damaged->bytes,
                           spellPlace(options, damaged->offset)),
               "the disk loses data: resume from the last checkpoint, elsewhere"};
}

//===----------------------------------------------------------------------===//
// Bytes that begin and end anywhere
//===----------------------------------------------------------------------===//

Status Storage::inspect(uint64_t offset, uint64_t bytes,
                        const std::function<Status(const std::byte *)> &body) {
  if (bytes == 0)
    return body(nullptr);
  const uint64_t first = offset / kStorageUnit * kStorageUnit,
                 whole = alignTo(offset + bytes, kStorageUnit) - first;
  const AlignedBlock copy = allocateBlock(whole);
  if (Status status = read(first, copy.get(), whole); !status)
    return status;
  return body(copy.get() + (offset - first));
}

Status Storage::change(uint64_t offset, uint64_t bytes, const std::function<Status(std::byte *)> &body) {
  if (bytes == 0)
    return body(nullptr);
  const uint64_t first = offset / kStorageUnit * kStorageUnit,
                 whole = alignTo(offset + bytes, kStorageUnit) - first;
  const AlignedBlock copy = allocateBlock(whole);
  // Of the first and the last unit something else may stay.
  if (offset != first)
    if (Status status = read(first, copy.get(), kStorageUnit); !status)
      return status;
  if ((offset + bytes) % kStorageUnit != 0 && (whole > kStorageUnit || offset == first))
    if (Status status = read(first + whole - kStorageUnit, copy.get() + whole - kStorageUnit, kStorageUnit);
        !status)
      return status;
  if (Status status = body(copy.get() + (offset - first)); !status)
    return status;
  return write(first, copy.get(), whole);
}

StorageTotals Storage::totals() const {
  const std::lock_guard lock(mutex);
  return sums;
}

std::string Storage::describe() const {
  return fmt::format("{}, {}, blocks of {} bytes{}", spellDirectories(options), queue->describe(),
                     options.settings.blockBytes, options.verify ? ", digests" : "");
}

} // namespace ds::rt
