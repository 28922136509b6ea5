//===- StagedWriter.cpp - Writes files as fast as the disk takes them ----------------===//

#include "ds/Runtime/Checkpoint/StagedWriter.h"

#include "Files/AlignedBlock.h"
#include "StartThreads.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace ds::rt {
namespace {

/// A block, and what is in it.
struct Block {
  AlignedBlock data;
  uint64_t offset = 0; ///< in the file
  size_t bytes = 0;
  const std::byte *elsewhere = nullptr; ///< the bytes, where they are not in `data`
  bool full = false;                    ///< to be written; its writer empties it
};

} // namespace

struct StagedWriter::Impl {
  Impl(FileLayer &layer, const StagedWriterOptions &options)
      : layer(layer), options(options), blocks(options.threads == 0 ? 1 : 2 * options.threads) {
    for (Block &block : blocks)
      block.data = allocateBlock(options.blockBytes);
    threads = startThreads(options.threads, [this] { work(); });
  }
  ~Impl() { endThreads(threads, mutex, changed, ending); }

  /// Writes all of a block; the errno, or 0. A write that is short goes on where it ended, through the cache
  /// if it ended between two units.
  int writeBlock(const Block &block) {
    const std::byte *const from = block.elsewhere ? block.elsewhere : block.data.get();
    for (size_t done = 0; done < block.bytes;) {
      const int64_t count = layer.write(file, block.offset + done, from + done, block.bytes - done);
      const bool refused = count == -EINVAL && isDirect; // a file system that has promised too much
      if (count < 0 && !refused)
        return static_cast<int>(-count);
      done += refused ? 0 : static_cast<size_t>(count);
      if (refused || (isDirect && done % kDirectUnit != 0 && done < block.bytes)) {
        isDirect = false;
        layer.setDirect(file, false);
      }
    }
    return 0;
  }

  /// What a thread does until the end.
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      const auto next = [this] {
        return std::find_if(blocks.begin(), blocks.end(), [](const Block &block) { return block.full; });
      };
      changed.wait(lock, [&] { return ending || next() != blocks.end(); });
      const auto block = next();
      if (block == blocks.end())
        return;
      block->full = false;
      lock.unlock();
      const int error = writeBlock(*block);
      lock.lock();
      if (error && !failure)
        failure = error;
      block->elsewhere = nullptr;
      block->bytes = 0;
      changed.notify_all();
    }
  }

  /// Hands the current block over; afterwards there is an empty one.
  void submit() {
    Block &block = blocks[current];
    block.offset = submitted;
    submitted += block.bytes;
    if (threads.empty()) {
      if (!failure)
        failure = writeBlock(block);
      block.elsewhere = nullptr;
      block.bytes = 0;
      return;
    }
    std::unique_lock lock(mutex);
    block.full = true;
    changed.notify_all();
    changed.wait(lock, [this] {
      return std::any_of(blocks.begin(), blocks.end(), [](const Block &each) { return each.bytes == 0; });
    });
    current = static_cast<size_t>(
        std::find_if(blocks.begin(), blocks.end(), [](const Block &each) { return each.bytes == 0; }) -
        blocks.begin());
  }
  int drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] {
      return threads.empty() || std::all_of(blocks.begin(), blocks.end(), [this](const Block &each) {
               return each.bytes == 0 || &each == &blocks[current];
             });
    });
    return failure;
  }
  int failed() {
    const std::lock_guard lock(mutex);
    return failure;
  }

  FileLayer &layer;
  const StagedWriterOptions options;
  int file = -1;
  std::atomic<bool> isDirect{false};
  uint64_t submitted = 0; ///< bytes of the file that were handed over
  size_t current = 0;     ///< the block that is being filled; its owner needs no lock
  std::mutex mutex;       ///< guards what follows, and who owns which block
  std::condition_variable changed;
  std::vector<Block> blocks;
  std::vector<std::thread> threads;
  int failure = 0;
  bool ending = false;
};

StagedWriter::StagedWriter(FileLayer &layer, const StagedWriterOptions &options)
    : impl(std::make_unique<Impl>(layer, options)) {}
StagedWriter::~StagedWriter() = default;

uint64_t StagedWriter::memoryBytes(const StagedWriterOptions &options) {
  return std::max<uint64_t>(1, 2 * options.threads) * options.blockBytes;
}

void StagedWriter::begin(int file) {
  impl->drain();
  impl->blocks[impl->current].bytes = 0;
  impl->file = file;
  impl->submitted = 0;
  impl->failure = 0;
  impl->isDirect = impl->layer.setDirect(file, true) == 0;
}

int StagedWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Block &block = impl->blocks[impl->current];
    const size_t part = std::min(bytes.size(), impl->options.blockBytes - block.bytes);
    std::memcpy(block.data.get() + block.bytes, bytes.data(), part);
    block.bytes += part;
    bytes = bytes.subspan(part);
    if (block.bytes == impl->options.blockBytes)
      impl->submit();
  }
  return impl->failed();
}

int StagedWriter::appendStable(std::span<const std::byte> bytes) {
  const size_t size = impl->options.blockBytes;
  const bool isAligned = reinterpret_cast<uintptr_t>(bytes.data()) % kDirectUnit == 0;
  while (isAligned && impl->blocks[impl->current].bytes == 0 && bytes.size() >= size && impl->failed() == 0) {
    Block &block = impl->blocks[impl->current];
    block.elsewhere = bytes.data();
    block.bytes = size;
    impl->submit();
    bytes = bytes.subspan(size);
  }
  return append(bytes); // what is left is less than a block, and may have no whole units
}

int StagedWriter::finish() {
  Block &last = impl->blocks[impl->current];
  if (last.bytes % kDirectUnit != 0 && impl->isDirect) {
    // Whole units go as all others; what is left goes through the cache when nothing else is under way.
    const size_t whole = last.bytes / kDirectUnit * kDirectUnit;
    std::vector<std::byte> rest(last.data.get() + whole, last.data.get() + last.bytes);
    last.bytes = whole;
    if (whole > 0)
      impl->submit();
    impl->drain();
    impl->isDirect = false;
    impl->layer.setDirect(impl->file, false);
    Block &tail = impl->blocks[impl->current];
    std::memcpy(tail.data.get(), rest.data(), rest.size());
    tail.bytes = rest.size();
  }
  if (impl->blocks[impl->current].bytes > 0)
    impl->submit();
  return impl->drain();
}

} // namespace ds::rt
