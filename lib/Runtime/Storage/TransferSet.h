//===- TransferSet.h - Transfers that are under way together ----------------------===//
#ifndef DS_LIB_RUNTIME_STORAGE_TRANSFERSET_H
#define DS_LIB_RUNTIME_STORAGE_TRANSFERSET_H

#include "ds/Runtime/Storage/Storage.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace ds::rt {

/// Requests to a queue, which is asked again many times while its system is short of something.
class PatientQueue {
public:
  PatientQueue(StorageQueue &queue, bool singleSubmit)
      : queue(queue), singleSubmit(singleSubmit), ended(std::max(queue.depth(), 1u)) {}

  bool isIdle() const { return underWay == 0; }
  void add(const StorageRequest &request) { waiting.push_back(request); }
  /// Starts what was added, as far as the queue takes it. Returns 0, or why it never will.
  int start();
  /// Waits until requests have ended, and puts them into `done`: none where the queue is to be asked again.
  /// Returns 0, or why it does not tell any more what has ended.
  int collect(std::span<const StorageCompletion> &done);
  /// Where the first request lies that was added and not started.
  uint64_t nextOffset() const { return waiting.front().offset; }
  /// What was added and not started, which is forgotten.
  std::vector<StorageRequest> takeWaiting() { return std::exchange(waiting, {}); }

private:
  StorageQueue &queue;
  const bool singleSubmit;
  std::vector<StorageRequest> waiting;
  std::vector<StorageCompletion> ended;
  uint32_t underWay = 0;
  int pauses = 0; ///< without progress
};

/// Transfers through one queue, of bytes that may be in several files: no block is in two. A queue that runs
/// empty between two of them leaves the disk idle: so the next one may begin before the one before it has
/// ended. Used by one thread at a time.
class TransferSet {
public:
  TransferSet(StorageQueue &queue, const StorageSettings &settings, StorageMap map = {});

  /// Starts a transfer as transferBlocks does it; returns its number. Its memory is the set's until `finish`.
  uint64_t begin(bool writes, uint64_t offset, std::byte *data, uint64_t bytes);
  /// Whether `finish` would return at once.
  bool isDone(uint64_t id);
  /// Waits until some request has ended, and starts what there is room for. Requires a transfer that is not
  /// done.
  void advance();
  /// Waits for a transfer, which is forgotten. After a failure of any block all that was not done fails.
  TransferOutcome finish(uint64_t id);

private:
  struct Transfer {
    uint64_t id;
    StorageRequest next; ///< where its next block begins
    uint64_t left;       ///< bytes that are in no block yet
    uint32_t out = 0;    ///< blocks that have not ended
    bool failed = false; ///< one of them never will
  };
  struct Block {
    StorageRequest request; ///< what is left of it
    uint64_t transfer = 0;
    int tries = 0; ///< without progress
    int ioErrors = 0;
  };

  bool mayStart() const { return failure.error == 0 && (settings.overlapEvents || queue.isIdle()); }
  Transfer &find(uint64_t id);
  void fail(int error, uint64_t offset);
  void drop(uint32_t tag);
  void cut();
  void start();
  void collect();
  void take(const StorageCompletion &completion);
  static bool goesOn(Block &block, int64_t result);

  PatientQueue queue;
  const StorageSettings &settings;
  const StorageMap map;
  uint64_t blockBytes = 0;
  std::deque<Transfer> transfers; ///< the oldest first
  std::vector<Block> blocks;      ///< by tag
  std::vector<uint32_t> unused;   ///< tags
  uint64_t nextId = 0;
  bool broken = false; ///< the queue does not tell any more what has ended
  TransferOutcome failure;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STORAGE_TRANSFERSET_H
