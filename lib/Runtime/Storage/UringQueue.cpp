//===- UringQueue.cpp - Requests by io_uring ---------------------------------------===//
//
// liburing is linked into ds-run, a few kilobytes, because what it does depends on the kernel alone. A system
// may have no io_uring, or forbid it (a seccomp filter, kernel.io_uring_disabled): then there is no queue.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Storage/Storage.h"

#include "ds/Support/Environment.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>

namespace ds::rt {
namespace {

class UringQueue final : public StorageQueue {
public:
  UringQueue(std::span<const int> files, uint32_t requests)
      : files(files.begin(), files.end()), requests(requests) {}
  ~UringQueue() override {
    if (isOpen)
      io_uring_queue_exit(&ring);
  }

  bool open() {
    isOpen = io_uring_queue_init(requests, &ring, 0) == 0;
    // Fixed files spare a reference for each request; without them all works as well.
    isFixed =
        isOpen && io_uring_register_files(&ring, files.data(), static_cast<unsigned>(files.size())) == 0;
    return isOpen;
  }

  uint32_t depth() const override { return requests; }

  int64_t submit(std::span<const StorageRequest> list) override {
    int64_t taken = 0;
    for (const StorageRequest &request : list) {
      io_uring_sqe *entry = io_uring_get_sqe(&ring);
      if (!entry)
        break;
      prepare(entry, request);
      ++taken;
    }
    // What the system does not take now stays in the ring, and goes with the next wait.
    const int result = io_uring_submit(&ring);
    if (result < 0 && result != -EAGAIN && result != -EINTR && result != -EBUSY)
      return result;
    return taken == 0 ? -EAGAIN : taken;
  }

  int64_t wait(std::span<StorageCompletion> ended) override {
    if (io_uring_cq_ready(&ring) == 0)
      if (const int result = io_uring_submit_and_wait(&ring, 1); result < 0)
        return result;
    io_uring_cqe *entry = nullptr;
    int64_t count = 0;
    while (static_cast<size_t>(count) < ended.size() && io_uring_peek_cqe(&ring, &entry) == 0) {
      ended[static_cast<size_t>(count++)] = {static_cast<uint32_t>(io_uring_cqe_get_data64(entry)),
                                             entry->res};
      io_uring_cqe_seen(&ring, entry);
    }
    return count;
  }

  int useMemory(std::span<const std::span<std::byte>> list) override {
    std::vector<iovec> vectors;
    for (const std::span<std::byte> &each : list)
      vectors.push_back({each.data(), each.size()});
    const int result =
        io_uring_register_buffers(&ring, vectors.data(), static_cast<unsigned>(vectors.size()));
    if (result == 0)
      memory.assign(list.begin(), list.end());
    return -result;
  }

  std::string describe() const override {
    return "io_uring of depth " + std::to_string(requests) + (memory.empty() ? "" : ", registered memory");
  }

private:
  void prepare(io_uring_sqe *entry, const StorageRequest &request) const {
    const auto known = std::find_if(memory.begin(), memory.end(), [&](const std::span<std::byte> &each) {
      return request.data >= each.data() && request.data + request.bytes <= each.data() + each.size();
    });
    const int target = isFixed ? static_cast<int>(request.file) : files[request.file];
    if (known != memory.end()) {
      const auto index = static_cast<int>(known - memory.begin());
      (request.writes
           ? io_uring_prep_write_fixed(entry, target, request.data, request.bytes, request.offset, index)
           : io_uring_prep_read_fixed(entry, target, request.data, request.bytes, request.offset, index));
    } else {
      (request.writes ? io_uring_prep_write(entry, target, request.data, request.bytes, request.offset)
                      : io_uring_prep_read(entry, target, request.data, request.bytes, request.offset));
    }
    if (isFixed)
      entry->flags |= IOSQE_FIXED_FILE;
    io_uring_sqe_set_data64(entry, request.tag);
  }

  std::vector<int> files; ///< by StorageRequest::file
  uint32_t requests;
  io_uring ring{};
  bool isOpen = false, isFixed = false;
  std::vector<std::span<std::byte>> memory; ///< as it was registered, in order
};

} // namespace

std::unique_ptr<StorageQueue> openUring(std::span<const int> files, uint32_t depth) {
  if (isSet("DS_NO_IO_URING", false))
    return nullptr;
  auto queue = std::make_unique<UringQueue>(files, depth);
  if (!queue->open())
    return nullptr;
  return queue;
}

} // namespace ds::rt
