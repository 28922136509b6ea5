//===- Arena.cpp - Maps and populates arenas -----------------------------------===//
//
// The mapping is aligned to a huge page and advised before it is touched; MADV_POPULATE_WRITE (Linux 5.14)
// then faults everything in one call and reports a failure, where older kernels have the pages touched one by
// one.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Arena.h"

#include "ds/Support/Align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <utility>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace ds::rt {
namespace {

constexpr uint64_t kHugePage = uint64_t(2) << 20;
constexpr uint64_t kPage = 4096;

/// The number in a one-line file of the control group; UINT64_MAX for "max" or no file.
uint64_t readLimit(const std::string &path) {
  std::ifstream file(path);
  uint64_t value;
  return file >> value ? value : UINT64_MAX;
}

/// What the control groups from the process's own up to the root leave; UINT64_MAX without limits.
uint64_t availableInControlGroups() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(groups, line))
    if (line.starts_with("0::"))
      path = line.substr(3);
  uint64_t least = UINT64_MAX;
  for (;; path.resize(path.rfind('/'))) {
    const std::string directory = "/sys/fs/cgroup" + path;
    const uint64_t limit = readLimit(directory + "/memory.max");
    const uint64_t used = readLimit(directory + "/memory.current");
    if (limit != UINT64_MAX && used != UINT64_MAX)
      least = std::min(least, limit - std::min(used, limit));
    if (path.rfind('/') == std::string::npos)
      return least;
  }
}

bool populate(std::byte *base, uint64_t bytes) {
  if (::madvise(base, bytes, MADV_POPULATE_WRITE) == 0)
    return true;
  if (errno != EINVAL)
    return false;
  for (uint64_t at = 0; at < bytes; at += kPage)
    *reinterpret_cast<volatile std::byte *>(base + at) = std::byte{0};
  return true;
}

} // namespace

uint64_t availableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  uint64_t kibibytes, machine = UINT64_MAX;
  while (info >> key >> kibibytes && std::getline(info, unit))
    if (key == "MemAvailable:")
      machine = kibibytes * 1024;
  return std::min(machine, availableInControlGroups());
}

Result<Arena> Arena::create(uint64_t bytes, const char *what) {
  Arena arena;
  if (bytes == 0)
    return arena;
  if (const uint64_t available = availableMemory(); bytes > available)
    return Error{
        ExitCode::DoesNotFit,
        fmt::format("the plan's {} arena takes {} bytes, but only {} are available", what, bytes, available),
        "compile with --memory set to what is available, or end other processes"};
  const uint64_t pages = alignTo(bytes, kPage), mapped = pages + kHugePage;
  void *mapping =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return Error{ExitCode::DoesNotFit,
                 fmt::format("cannot map the {} arena of {} bytes: {}", what, bytes, std::strerror(errno)),
                 ""};
  const uint64_t address = reinterpret_cast<uint64_t>(mapping);
  arena.mapping = mapping;
  arena.mapped = mapped;
  arena.base = reinterpret_cast<std::byte *>(alignTo(address, kHugePage));
  arena.bytes = bytes;
  // Whoever runs past the end meets no memory of others.
  std::byte *const end = arena.base + pages;
  ::mprotect(end, static_cast<size_t>(static_cast<std::byte *>(mapping) + mapped - end), PROT_NONE);
  ::madvise(arena.base, pages, MADV_HUGEPAGE); // a wish: refused where huge pages are off
  if (!populate(arena.base, pages))
    return Error{
        ExitCode::DoesNotFit,
        fmt::format("cannot populate the {} arena of {} bytes: {}", what, bytes, std::strerror(errno)), ""};
  return arena;
}

Arena::Arena(Arena &&other) noexcept
    : base(std::exchange(other.base, nullptr)), bytes(std::exchange(other.bytes, 0)),
      mapping(std::exchange(other.mapping, nullptr)), mapped(std::exchange(other.mapped, 0)) {}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(base, other.base);
  std::swap(bytes, other.bytes);
  std::swap(mapping, other.mapping);
  std::swap(mapped, other.mapped);
  return *this;
}

Arena::~Arena() {
  if (mapping)
    ::munmap(mapping, mapped);
}

} // namespace ds::rt
