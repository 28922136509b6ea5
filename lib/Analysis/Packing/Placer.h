//===- Placer.h - First fit into an arena, fast ---------------------------------===//
//
// The primitive of every packing heuristic: put one item at the lowest address that is free during its whole
// lifetime. Placed items are kept sorted by address in small blocks; a block carries one bit for each 64th of
// the time line in which one of its items lives, so that most blocks are skipped by one AND. What lies below
// the lowest hole (LowestHoles.h) is counted, not looked at one by one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_PLACER_H
#define DS_LIB_ANALYSIS_PACKING_PLACER_H

#include "LowestHoles.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ds::analysis::detail {

/// What is packed: a rectangle of `size` bytes over the time ranks [begin, end).
struct Item {
  int32_t begin = 0, end = 0;
  int64_t size = 0;  ///< > 0, already rounded up
  int64_t align = 1; ///< power of two
};

/// An item that has its address.
struct Placed {
  int32_t begin = 0, end = 0;
  int64_t lo = 0, hi = 0;
};

/// Which free gap an item takes.
enum class Fit : uint8_t {
  First, ///< the lowest
  Best,  ///< the tightest; the lowest of equals
};

class Placer {
public:
  /// For `items`, whose times are in [0, horizon); nothing is placed below `floor`.
  Placer(const std::vector<Item> &items, int32_t horizon, int64_t floor);

  /// Forgets everything that was placed.
  void clear();

  /// Marks a rectangle as taken. It may not overlap another one.
  void occupy(const Placed &placed);

  /// Puts `item` into a gap and returns its address.
  int64_t place(const Item &item, Fit fit);

  /// Work done since construction, in about nanoseconds.
  int64_t steps() const { return stepCount; }

  /// How many of the items beside one that is placed were looked at one by one.
  int64_t examined() const { return examinedCount; }

private:
  static constexpr int kBlock = 16;
  struct Block {
    uint64_t mask = 0; ///< 64ths of the time line in which an item of the block lives
    int count = 0;
    int64_t top = 0;                                                       ///< the highest end
    int32_t lastBegin = 0, firstEnd = std::numeric_limits<int32_t>::max(); ///< of its items
    int32_t begin[kBlock], end[kBlock];
    int64_t lo[kBlock], hi[kBlock];
    Block();
    /// Whether all items live at some time of [from, to): mostly, where values are stacked from forward to
    /// backward. False says nothing.
    bool allLive(int32_t from, int32_t to) const { return lastBegin < to && firstEnd > from; }
    int countLive(int32_t from, int32_t to) const;
    unsigned findLive(int32_t from, int32_t to) const;
    void insert(int at, const Placed &placed, uint64_t bits);
  };

  uint64_t bitsOf(int32_t begin, int32_t end) const;
  void split(size_t orderIndex);

  int32_t horizon;
  int64_t floor;
  LowestHoles holes;
  int64_t stepCount = 0;
  int64_t examinedCount = 0;
  std::vector<Block> blocks;
  std::vector<uint32_t> order; ///< blocks in address order
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_PLACER_H
