//===- StorageWatch.cpp - Tells of storage that does not answer ------------------===//
#include "ds/Runtime/Files/StorageWatch.h"

#include "Text.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

using namespace ds::rt;
using std::chrono::steady_clock;

namespace {

/// All operations that are under way, on whatever threads.
std::mutex listMutex;
StorageOperation *first = nullptr;

} // namespace

StorageOperation::StorageOperation(const char *doing, const std::string &path)
    : doing(doing), path(path), since(steady_clock::now()), before(nullptr) {
  std::lock_guard<std::mutex> lock(listMutex);
  after = std::exchange(first, this);
  if (after)
    after->before = this;
}

StorageOperation::~StorageOperation() {
  std::lock_guard<std::mutex> lock(listMutex);
  (before ? before->after : first) = after;
  if (after)
    after->before = before;
}

StorageWatch::StorageWatch(std::chrono::milliseconds patience, Tell tell)
    : patience(patience), tell(std::move(tell)) {
  try {
    thread = std::thread([this] { watch(); });
  } catch (const std::system_error &) { // a run without it is better than none
  }
}

StorageWatch::~StorageWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void StorageWatch::watch() {
  constexpr int kLooks = 10; // while patience lasts
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, patience / kLooks, [&] { return isOver; })) {
    std::vector<std::string> lines;
    {
      std::lock_guard<std::mutex> list(listMutex);
      for (StorageOperation *operation = first; operation; operation = operation->after) {
        const auto taken = steady_clock::now() - operation->since;
        if (taken < std::max<steady_clock::duration>(patience, 2 * operation->told))
          continue;
        operation->told = taken;
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(taken).count();
        lines.push_back(std::string(operation->doing) + " " + quote(operation->path) + " for " +
                        std::to_string(seconds) + " s");
      }
    }
    for (const std::string &line : lines)
      tell(line);
  }
}
