//===- Transfer.cpp - One transfer as blocks under way -----------------------------===//
//
// As many blocks as the queue allows are under way. What comes back short is asked for again from where it
// ended, rounded down to a unit, because direct access knows no less. Interruptions and a system that is
// short of something are asked again many times, an I/O error once. After the first failure nothing new is
// started, and what is under way is waited for: it moves memory that the caller will want back.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Storage.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace ds::rt {
namespace {

constexpr int kPatience = 1000; ///< how often one block, or the queue, is asked again without any progress
constexpr int kIoRetries = 1;

/// Whether the system asks to be asked again.
bool passes(int error) {
  return error == EINTR || error == EAGAIN || error == ECANCELED || error == EBUSY || error == ENOMEM ||
         error == ENOBUFS;
}

/// A block that is under way, or is to be.
struct Block {
  StorageRequest request;
  int tries = 0; ///< without progress
  int ioErrors = 0;
};

class Transfer {
public:
  Transfer(StorageQueue &queue, const StorageSettings &settings, StorageRequest whole, uint64_t bytes)
      : queue(queue), settings(settings), next(whole), left(bytes),
        blockBytes((std::max(settings.blockBytes, kStorageUnit) + kStorageUnit - 1) / kStorageUnit *
                   kStorageUnit),
        blocks(std::max(queue.depth(), 1u)) {
    blockBytes = std::min(blockBytes, uint64_t(1) << 30); // a request counts in 32 bits
    for (uint32_t i = 0; i < blocks.size(); ++i)
      unused.push_back(i);
    ended.resize(blocks.size());
  }

  TransferOutcome run() {
    while (!broken && (underWay > 0 || (!outcome.error && (left > 0 || !waiting.empty())))) {
      const bool mayStart = !outcome.error && (settings.overlapEvents || underWay == 0);
      if (mayStart)
        start();
      if (underWay > 0)
        collect();
    }
    return outcome;
  }

private:
  void fail(int error, uint64_t offset) {
    if (outcome.error == 0)
      outcome = {error, offset};
  }

  /// Cuts new blocks as long as there is room for them, behind those that are to be asked again.
  void cut() {
    while (left > 0 && !unused.empty()) {
      const uint32_t tag = unused.back();
      unused.pop_back();
      next.bytes = static_cast<uint32_t>(std::min(left, blockBytes));
      next.tag = tag;
      blocks[tag] = {next};
      waiting.push_back(next);
      next.offset += next.bytes;
      next.data += next.bytes;
      left -= next.bytes;
    }
  }

  void start() {
    cut();
    for (size_t done = 0; done < waiting.size();) {
      const size_t count = settings.singleSubmit ? 1 : waiting.size() - done;
      const int64_t taken = queue.submit(std::span(waiting).subspan(done, count));
      if (taken > 0) {
        done += static_cast<size_t>(taken);
        underWay += static_cast<uint32_t>(taken);
        pauses = 0;
        continue;
      }
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<ptrdiff_t>(done));
      const int error = taken < 0 ? static_cast<int>(-taken) : EAGAIN;
      if (!passes(error) || (underWay == 0 && ++pauses > kPatience))
        fail(error, waiting.front().offset);
      else if (underWay == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      return;
    }
    waiting.clear();
  }

  void collect() {
    const int64_t count = queue.wait(ended);
    if (count < 0) {
      if (passes(static_cast<int>(-count)) && ++pauses <= kPatience)
        return;
      broken = true;
      return fail(static_cast<int>(-count), next.offset);
    }
    pauses = 0;
    for (int64_t i = 0; i < count; ++i)
      take(ended[static_cast<size_t>(i)]);
  }

  void take(const StorageCompletion &completion) {
    --underWay;
    Block &block = blocks[completion.tag];
    const int64_t result = completion.result;
    if (result == int64_t(block.request.bytes)) {
      unused.push_back(completion.tag);
      return;
    }
    if (!goesOn(block, result))
      return fail(result < 0 ? static_cast<int>(-result) : EIO, block.request.offset);
    waiting.push_back(block.request);
  }

  /// Makes `block` what is left of it; false if it has failed for good.
  bool goesOn(Block &block, int64_t result) {
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

  StorageQueue &queue;
  const StorageSettings &settings;
  StorageRequest next; ///< where the next block begins
  uint64_t left;       ///< bytes that are in no block yet
  uint64_t blockBytes;
  std::vector<Block> blocks;           ///< by tag
  std::vector<uint32_t> unused;        ///< tags
  std::vector<StorageRequest> waiting; ///< to be started
  std::vector<StorageCompletion> ended;
  uint32_t underWay = 0;
  int pauses = 0;
  bool broken = false; ///< the queue does not tell any more what has ended
  TransferOutcome outcome;
};

} // namespace

TransferOutcome transferBlocks(StorageQueue &queue, const StorageSettings &settings, bool writes,
                               uint64_t offset, std::byte *data, uint64_t bytes) {
  return Transfer(queue, settings, {writes, offset, data, 0, 0}, bytes).run();
}

} // namespace ds::rt
