//===- ThreadQueue.cpp - Requests by threads ---------------------------------------===//
//
// Each thread reads or writes one block at a time, so that there are as many as requests may be under way.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Storage/Storage.h"

#include "ds/Support/RunTool.h"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ds::rt {
namespace {

class ThreadQueue final : public StorageQueue {
public:
  ThreadQueue(std::span<const int> files, uint32_t requests)
      : files(files.begin(), files.end()), requests(requests) {}
  ~ThreadQueue() override {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    asked.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  Status start() try {
    for (uint32_t i = 0; i < requests; ++i)
      threads.emplace_back([this] { work(); });
    return {};
  } catch (const std::system_error &error) {
    return noThread(error.code().value());
  }

  uint32_t depth() const override { return requests; }

  int64_t submit(std::span<const StorageRequest> list) override {
    {
      const std::lock_guard lock(mutex);
      waiting.insert(waiting.end(), list.begin(), list.end());
    }
    asked.notify_all();
    return static_cast<int64_t>(list.size());
  }

  int64_t wait(std::span<StorageCompletion> ended) override {
    std::unique_lock lock(mutex);
    answered.wait(lock, [this] { return !done.empty(); });
    const size_t count = std::min(ended.size(), done.size());
    std::copy_n(done.begin(), count, ended.begin());
    done.erase(done.begin(), done.begin() + static_cast<ptrdiff_t>(count));
    return static_cast<int64_t>(count);
  }

  int useMemory(std::span<const std::span<std::byte>>) override { return 0; }

  std::string describe() const override { return std::to_string(requests) + " threads"; }

private:
  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      asked.wait(lock, [this] { return ending || !waiting.empty(); });
      if (waiting.empty())
        return;
      const StorageRequest request = waiting.front();
      waiting.pop_front();
      lock.unlock();
      const auto offset = static_cast<off_t>(request.offset);
      const int file = files[request.file];
      const ssize_t moved = request.writes ? ::pwrite(file, request.data, request.bytes, offset)
                                           : ::pread(file, request.data, request.bytes, offset);
      const StorageCompletion completion{request.tag, moved < 0 ? -int64_t(errno) : int64_t(moved)};
      lock.lock();
      done.push_back(completion);
      answered.notify_one();
    }
  }

  std::vector<int> files; ///< by StorageRequest::file
  uint32_t requests;
  std::mutex mutex; ///< guards what follows
  std::condition_variable asked, answered;
  std::deque<StorageRequest> waiting;
  std::vector<StorageCompletion> done;
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace

Result<std::unique_ptr<StorageQueue>> openStorageThreads(std::span<const int> files, uint32_t depth) {
  auto queue = std::make_unique<ThreadQueue>(files, depth);
  if (Status status = queue->start(); !status)
    return status.error();
  return std::unique_ptr<StorageQueue>(std::move(queue));
}

} // namespace ds::rt
