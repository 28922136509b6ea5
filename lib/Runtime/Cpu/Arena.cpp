//===- Arena.cpp - Maps and populates arenas -----------------------------------===//
//
// The mapping is aligned to a huge page and advised before it is touched; MADV_POPULATE_WRITE (Linux 5.14)
// then faults everything in one call and reports a failure, where older kernels have the pages touched one by
// one. Pages are cleared when they are first touched, which takes a thread a second for a few GB: a large
// arena is populated by all processors.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Cpu/Arena.h"

#include "HostTeam.h"

#include "ds/Support/Align.h"
#include "ds/Support/HostMemory.h"
#include "ds/Support/Processors.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ds::rt {
namespace {

constexpr uint64_t kHugePage = uint64_t(2) << 20;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kShare = uint64_t(128) << 20; ///< that are worth a thread

bool populate(std::byte *base, uint64_t bytes) {
  if (::madvise(base, bytes, MADV_POPULATE_WRITE) == 0)
    return true;
  if (errno != EINVAL)
    return false;
  for (uint64_t at = 0; at < bytes; at += kPage)
    *reinterpret_cast<volatile std::byte *>(base + at) = std::byte{0};
  return true;
}

/// The same on several threads, as far as there are bytes and processors for them; errno is that of a
/// failure.
bool populateTogether(std::byte *base, uint64_t bytes) {
  const auto threads = static_cast<uint32_t>(
      std::min<uint64_t>(processorsLeft(processorShare()), std::max<uint64_t>(bytes / kShare, 1)));
  if (threads == 1)
    return populate(base, bytes);
  Result<std::unique_ptr<HostTeam>> team = HostTeam::start(threads);
  if (!team)
    return populate(base, bytes);
  struct Work {
    std::byte *base;
    uint64_t bytes;
    std::atomic<int> failure{0};
  } work{base, bytes};
  (*team)->run(threads, &work, [](void *context, uint32_t index, uint32_t count) {
    Work &work = *static_cast<Work *>(context);
    const uint64_t share = alignTo((work.bytes + count - 1) / count, kHugePage);
    const uint64_t begin = std::min(index * share, work.bytes), end = std::min(begin + share, work.bytes);
    if (begin < end && !populate(work.base + begin, end - begin))
      work.failure = errno;
  });
  errno = work.failure;
  return work.failure == 0;
}

} // namespace

Result<Arena> Arena::create(uint64_t bytes, const char *what) {
  Arena arena;
  if (bytes == 0)
    return arena;
  if (const HostMemory left = availableMemory(); bytes > static_cast<uint64_t>(left.bytes))
    return Error{ExitCode::DoesNotFit,
                 fmt::format("the plan's {} arena takes {} bytes, but only {} are available ({})", what,
                             bytes, left.bytes, left.source),
                 "compile with --memory set to what is available, or end other processes"};
  const uint64_t pages = alignTo(bytes, kPage);
  arena.mapping =
      Mapping(pages + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (!arena.mapping)
    return Error{ExitCode::DoesNotFit,
                 fmt::format("cannot map the {} arena of {} bytes: {}", what, bytes, std::strerror(errno)),
                 ""};
  const uint64_t address = reinterpret_cast<uint64_t>(arena.mapping.data());
  arena.base = reinterpret_cast<std::byte *>(alignTo(address, kHugePage));
  arena.bytes = bytes;
  // Whoever runs past the end meets no memory of others.
  std::byte *const end = arena.base + pages;
  ::mprotect(end, static_cast<size_t>(arena.mapping.data() + arena.mapping.size() - end), PROT_NONE);
  ::madvise(arena.base, pages, MADV_HUGEPAGE); // a wish: refused where huge pages are off
  if (!populateTogether(arena.base, pages))
    return Error{
        ExitCode::DoesNotFit,
        fmt::format("cannot populate the {} arena of {} bytes: {}", what, bytes, std::strerror(errno)), ""};
  return arena;
}

} // namespace ds::rt
