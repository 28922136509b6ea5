//===- Transfer.cpp - Transfers as blocks under way --------------------------------===//
//
// As many blocks as the queue allows are under way, the oldest transfer's first. What comes back short is
// asked for again from where it ended, rounded down to a unit, because direct access knows no less.
// Interruptions and a system that is short of something are asked again many times, an I/O error once. After
// the first failure nothing new is started, and what is under way is waited for: it moves memory that the
// caller will want back.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Storage/Storage.h"

#include "TransferSet.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

namespace ds::rt {
namespace {

constexpr int kPatience = 1000; ///< how often one block, or the queue, is asked again without any progress
constexpr int kIoRetries = 1;

/// Whether the system asks to be asked again.
bool passes(int error) {
  return error == EINTR || error == EAGAIN || error == ECANCELED || error == EBUSY || error == ENOMEM ||
         error == ENOBUFS;
}

} // namespace

TransferSet::TransferSet(StorageQueue &queue, const StorageSettings &settings, StorageMap map)
    : queue(queue, settings.singleSubmit), settings(settings), map(std::move(map)),
      blocks(std::max(queue.depth(), 1u)) {
  constexpr uint64_t kMostBlock = uint64_t(1) << 30; // a request counts in 32 bits
  const uint64_t bytes = std::clamp(settings.blockBytes, kStorageUnit, kMostBlock);
  blockBytes = alignTo(bytes, kStorageUnit);
  for (uint32_t i = 0; i < blocks.size(); ++i)
    unused.push_back(i);
}

uint64_t TransferSet::begin(bool writes, uint64_t offset, std::byte *data, uint64_t bytes) {
  transfers.push_back({nextId, {writes, offset, data, 0, 0, 0}, bytes});
  if (mayStart())
    start();
  return nextId++;
}

TransferSet::Transfer &TransferSet::find(uint64_t id) {
  return *std::find_if(transfers.begin(), transfers.end(),
                       [id](const Transfer &each) { return each.id == id; });
}

bool TransferSet::isDone(uint64_t id) {
  const Transfer &transfer = find(id);
  return broken || (transfer.out == 0 && (transfer.left == 0 || failure.error != 0));
}

TransferOutcome TransferSet::finish(uint64_t id) {
  while (!isDone(id))
    advance();
  const Transfer done = find(id);
  std::erase_if(transfers, [id](const Transfer &each) { return each.id == id; });
  return done.left == 0 && !done.failed && !broken ? TransferOutcome() : failure;
}

void TransferSet::advance() {
  if (mayStart())
    start();
  if (!queue.isIdle())
    collect();
  if (mayStart()) // the disk has room now, and the caller may come back late
    start();
}

void TransferSet::fail(int error, uint64_t offset) {
  if (failure.error == 0)
    failure = {error, offset};
  // What is to be asked again never will be.
  for (const StorageRequest &request : queue.takeWaiting())
    drop(request.tag);
}

/// A block's transfer is without it.
void TransferSet::drop(uint32_t tag) {
  Transfer &transfer = find(blocks[tag].transfer);
  transfer.failed = true;
  --transfer.out;
  unused.push_back(tag);
}

/// Cuts new blocks as long as there is room for them, behind those that are to be asked again.
void TransferSet::cut() {
  for (Transfer &transfer : transfers)
    while (transfer.left > 0 && !unused.empty()) {
      StorageRequest &next = transfer.next;
      next.tag = unused.back();
      unused.pop_back();
      const uint64_t toEnd = map.endOfRun(next.offset) - next.offset;
      next.file = map.fileOf(next.offset);
      next.bytes = static_cast<uint32_t>(std::min({transfer.left, blockBytes, toEnd}));
      blocks[next.tag] = {next, transfer.id};
      queue.add(next);
      next.offset += next.bytes;
      next.data += next.bytes;
      transfer.left -= next.bytes;
      ++transfer.out;
    }
}

int PatientQueue::start() {
  while (!waiting.empty()) {
    const size_t count = singleSubmit ? 1 : waiting.size();
    const int64_t taken = queue.submit(std::span(waiting).first(count));
    if (taken > 0) {
      waiting.erase(waiting.begin(), waiting.begin() + taken);
      underWay += static_cast<uint32_t>(taken);
      pauses = 0;
      continue;
    }
    const int error = taken < 0 ? static_cast<int>(-taken) : EAGAIN;
    if (!passes(error) || (underWay == 0 && ++pauses > kPatience))
      return error;
    if (underWay == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    return 0;
  }
  return 0;
}

int PatientQueue::collect(std::span<const StorageCompletion> &done) {
  const int64_t count = queue.wait(ended);
  if (count < 0) {
    const int error = static_cast<int>(-count);
    return passes(error) && ++pauses <= kPatience ? 0 : error;
  }
  pauses = 0;
  underWay -= static_cast<uint32_t>(count);
  done = std::span(ended).first(static_cast<size_t>(count));
  return 0;
}

void TransferSet::start() {
  cut();
  if (const int error = queue.start())
    fail(error, queue.nextOffset());
}

void TransferSet::collect() {
  std::span<const StorageCompletion> done;
  if (const int error = queue.collect(done)) {
    broken = true;
    return fail(error, transfers.front().next.offset);
  }
  for (const StorageCompletion &completion : done)
    take(completion);
}

void TransferSet::take(const StorageCompletion &completion) {
  Block &block = blocks[completion.tag];
  const int64_t result = completion.result;
  if (result == int64_t(block.request.bytes)) {
    --find(block.transfer).out;
    unused.push_back(completion.tag);
  } else if (!goesOn(block, result)) {
    const uint64_t offset = block.request.offset;
    drop(completion.tag);
    fail(result < 0 ? static_cast<int>(-result) : EIO, offset);
  } else if (failure.error != 0) {
    drop(completion.tag);
  } else {
    queue.add(block.request);
  }
}

/// Makes `block` what is left of it; false if it has failed for good.
bool TransferSet::goesOn(Block &block, int64_t result) {
  const auto moved =
      static_cast<uint32_t>(std::max<int64_t>(result, 0) / int64_t(kStorageUnit) * int64_t(kStorageUnit));
  if (moved >= block.request.bytes) // more than was asked for: not to be trusted
    return false;
  block.request.offset += moved;
  block.request.data += moved;
  block.request.bytes -= moved;
  if (moved > 0) {
    block.tries = 0;
    return true;
  }
  if (result == -EIO)
    return ++block.ioErrors <= kIoRetries;
  if (result == 0 && !block.request.writes) // the file ends here
    return false;
  return (result >= 0 || passes(static_cast<int>(-result))) && ++block.tries <= kPatience;
}

TransferOutcome transferBlocks(StorageQueue &queue, const StorageSettings &settings, bool writes,
                               uint64_t offset, std::byte *data, uint64_t bytes) {
  TransferSet set(queue, settings);
  return set.finish(set.begin(writes, offset, data, bytes));
}

} // namespace ds::rt
