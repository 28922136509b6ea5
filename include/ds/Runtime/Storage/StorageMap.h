//===- StorageMap.h - Which file each byte of storage is in -------------------------===//
//
// A rank's arena of storage lies in one file, or in two where its parameters have a disk of their own. A byte
// has the same offset in its file as in the arena, so that plans know nothing of files: each file has holes
// where the other has bytes.
//
//     arena     0        8192     12288        20480
//     file 0    moments  (hole)   masters
//     file 1    (hole)   weights
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_STORAGE_STORAGEMAP_H
#define DS_RUNTIME_STORAGE_STORAGEMAP_H

#include <cstdint>
#include <vector>

namespace ds::rt {

/// Bytes [begin, end) of an arena.
struct StorageRange {
  uint64_t begin = 0, end = 0;

  bool operator==(const StorageRange &) const = default;
};

class StorageMap {
public:
  /// All in file 0.
  StorageMap() = default;
  /// File 1 has the whole units that `second` touches, whatever their order; file 0 all others.
  explicit StorageMap(std::vector<StorageRange> second);

  /// 2, or 1 where all is in file 0.
  uint32_t files() const { return second.empty() ? 1 : 2; }
  uint32_t fileOf(uint64_t offset) const;
  /// Where the bytes end that follow `offset` in its file without a hole; UINT64_MAX: nowhere.
  uint64_t endOfRun(uint64_t offset) const;
  /// What `file` has of an arena of `bytes` bytes: in order, with holes between.
  std::vector<StorageRange> rangesOf(uint32_t file, uint64_t bytes) const;

private:
  std::vector<StorageRange> second; ///< in order, with holes between
};

/// The sum of their bytes.
uint64_t bytesOf(const std::vector<StorageRange> &ranges);

} // namespace ds::rt

#endif // DS_RUNTIME_STORAGE_STORAGEMAP_H
