//===- StorageAddresses.cpp - Addresses that stand for the bytes of a storage -------===//
#include "ds/Runtime/Storage/Storage.h"
#include "ds/Support/Align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace ds::rt {

/// What is mapped for them: none are none, but mappings are of a page at least.
static uint64_t mappedBytes(uint64_t bytes) { return alignTo(std::max<uint64_t>(bytes, 1), kStorageUnit); }

Status StorageAddresses::reserve(uint64_t count) {
  void *range =
      ::mmap(nullptr, mappedBytes(count), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return Error{ExitCode::DoesNotFit,
                 fmt::format("no room for {} bytes of addresses of storage: {}", count, std::strerror(errno)),
                 "raise the limit of address space (ulimit -v)"};
  first = static_cast<std::byte *>(range);
  bytes = count;
  return {};
}

StorageAddresses::~StorageAddresses() {
  if (first)
    ::munmap(first, mappedBytes(bytes));
}

} // namespace ds::rt
