//===- FaultyQueue.h - A queue in memory that fails as it is told ------------------===//
#ifndef DS_UNITTESTS_RUNTIME_STORAGE_FAULTYQUEUE_H
#define DS_UNITTESTS_RUNTIME_STORAGE_FAULTYQUEUE_H

#include "ds/Runtime/Storage/Storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>

namespace ds::rt::test {

/// Bytes move when a completion is told of, not before: who takes back memory too early sees it.
class FaultyQueue final : public StorageQueue {
public:
  /// What becomes of a request instead of what it asks for: bytes that are moved, or -errno.
  using Fault = std::function<std::optional<int64_t>(const StorageRequest &request)>;

  FaultyQueue(uint32_t requests, uint64_t bytes) : contents(bytes), requests(requests) {}

  uint32_t depth() const override { return requests; }

  int64_t submit(std::span<const StorageRequest> list) override {
    if (submitError)
      if (const int error = submitError(); error != 0)
        return -error;
    size_t count = list.size();
    if (takesPart && count > 1)
      count = 1 + random() % count;
    seen.sizes.push_back(count);
    for (const StorageRequest &request : list.first(count))
      underWay.push_back(request);
    seen.most = std::max(seen.most, underWay.size());
    return static_cast<int64_t>(count);
  }

  int64_t wait(std::span<StorageCompletion> ended) override {
    if (waitError)
      if (const int error = waitError(); error != 0)
        return -error;
    if (reorders)
      std::shuffle(underWay.begin(), underWay.end(), random);
    size_t count = std::min(ended.size(), underWay.size());
    if (reorders && count > 1)
      count = 1 + random() % count;
    for (size_t i = 0; i < count; ++i)
      ended[i] = end(underWay[i]);
    underWay.erase(underWay.begin(), underWay.begin() + static_cast<ptrdiff_t>(count));
    return static_cast<int64_t>(count);
  }

  int useMemory(std::span<const std::span<std::byte>>) override { return memoryError; }
  std::string describe() const override { return "a queue in memory"; }

  std::vector<std::byte> contents, second; ///< of file 0 and file 1
  Fault fault;
  std::function<int()> submitError, waitError; ///< an errno, or 0
  bool takesPart = false, reorders = false;
  int memoryError = 0;
  std::vector<StorageRequest> underWay;
  /// What was submitted.
  struct Seen {
    std::vector<size_t> sizes; ///< of each submission
    size_t most = 0;           ///< requests under way at once
  } seen;
  std::mt19937 random{7};

private:
  StorageCompletion end(const StorageRequest &request) {
    int64_t result = request.bytes;
    if (fault)
      if (const std::optional<int64_t> other = fault(request))
        result = *other;
    std::vector<std::byte> &file = request.file == 0 ? contents : second;
    if (request.offset + request.bytes > file.size())
      result = 0;
    if (result > 0 && request.writes)
      std::memcpy(file.data() + request.offset, request.data, static_cast<size_t>(result));
    else if (result > 0)
      std::memcpy(request.data, file.data() + request.offset, static_cast<size_t>(result));
    return {request.tag, result};
  }

  uint32_t requests;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_STORAGE_FAULTYQUEUE_H
