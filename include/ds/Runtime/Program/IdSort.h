//===- IdSort.h - How an embedding's gradient sorts its ids on CUDA ---------------===//
//
// A radix sort of the numbers of the ids, stable, so that equal ids stay in their order: digit by digit, each
// of as many bits as make the digits alike. The planner asks what memory that takes and the launches divide
// it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_IDSORT_H
#define DS_RUNTIME_PROGRAM_IDSORT_H

#include <bit>
#include <cstdint>

namespace ds::rt {

/// Ids that one block of threads counts and places, and the bits of a digit at most.
inline constexpr int64_t kSortTile = 512;
inline constexpr int kMostDigitBits = 9;

struct IdSort {
  int64_t ids, tiles; ///< tiles: blocks of ids
  int digits, digitBits;

  /// Of `ids` ids of a table of `rows` rows; ids outside it come last, as the row behind the last.
  static constexpr IdSort of(int64_t ids, int64_t rows) {
    const int bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(rows) | 1));
    const int digits = (bits + kMostDigitBits - 1) / kMostDigitBits;
    return {ids, (ids + kSortTile - 1) / kSortTile, digits, (bits + digits - 1) / digits};
  }
  constexpr int64_t bins() const { return int64_t(1) << digitBits; }
  /// Numbers of ids, twice; the sorted ids; the counts of each tile's bins, and of all tiles'. All are i32.
  constexpr uint64_t workspaceBytes() const {
    return sizeof(int32_t) * static_cast<uint64_t>(3 * ids + (tiles + 1) * bins());
  }
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_IDSORT_H
