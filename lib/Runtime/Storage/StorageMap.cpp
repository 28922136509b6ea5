//===- StorageMap.cpp - Which file each byte of storage is in -----------------------===//
#include "ds/Runtime/Storage/StorageMap.h"

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Align.h"

#include <algorithm>

namespace ds::rt {

StorageMap::StorageMap(std::vector<StorageRange> ranges) {
  for (StorageRange &each : ranges)
    each = {each.begin / kStorageUnit * kStorageUnit, alignTo(each.end, kStorageUnit)};
  std::erase_if(ranges, [](const StorageRange &each) { return each.begin >= each.end; });
  std::sort(ranges.begin(), ranges.end(),
            [](const StorageRange &a, const StorageRange &b) { return a.begin < b.begin; });
  for (const StorageRange &each : ranges)
    if (second.empty() || second.back().end < each.begin)
      second.push_back(each);
    else
      second.back().end = std::max(second.back().end, each.end);
}

/// The first range that ends behind `offset`.
static auto findBehind(const std::vector<StorageRange> &ranges, uint64_t offset) {
  return std::upper_bound(ranges.begin(), ranges.end(), offset,
                          [](uint64_t at, const StorageRange &each) { return at < each.end; });
}

uint32_t StorageMap::fileOf(uint64_t offset) const {
  const auto range = findBehind(second, offset);
  return range != second.end() && range->begin <= offset ? 1 : 0;
}

uint64_t StorageMap::endOfRun(uint64_t offset) const {
  const auto range = findBehind(second, offset);
  if (range == second.end())
    return UINT64_MAX;
  return range->begin <= offset ? range->end : range->begin;
}

std::vector<StorageRange> StorageMap::rangesOf(uint32_t file, uint64_t bytes) const {
  std::vector<StorageRange> ranges;
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t end = std::min(bytes, endOfRun(at));
    if (fileOf(at) == file)
      ranges.push_back({at, end});
    at = end;
  }
  return ranges;
}

uint64_t bytesOf(const std::vector<StorageRange> &ranges) {
  uint64_t bytes = 0;
  for (const StorageRange &each : ranges)
    bytes += each.end - each.begin;
  return bytes;
}

} // namespace ds::rt
