//===- Heights.h - How high each time is filled, and what may be lost there --------===//
//
// Of items of 4 bytes at times [0, 2) and 3 bytes at [1, 3), below a top of 8: times 0, 1 and 2 may lose 4, 1
// and 5 bytes between them. The second above a hole of 1 byte takes that of times 1 and 2, and nothing is
// left at time 1.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_HEIGHTS_H
#define DS_LIB_ANALYSIS_PACKING_HEIGHTS_H

#include "Placer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ds::analysis::detail {

/// By time, in bytes, while items are packed below a top.
struct Heights {
  std::vector<int64_t> height;  ///< of what is packed or lost
  std::vector<int64_t> mayLose; ///< between items

  Heights() = default;
  /// `times` of them, which nothing fills above `floor`; `items` are all that is to lie below `top`.
  Heights(const std::vector<Item> &items, size_t times, int64_t floor, int64_t top)
      : height(times, floor), mayLose(times, top - floor) {
    for (const Item &item : items)
      for (int32_t time = item.begin; time < item.end; ++time)
        mayLose[time] -= item.size;
  }

  /// Whether the items of each time have room below the top.
  bool canHold() const {
    return std::all_of(mayLose.begin(), mayLose.end(), [](int64_t may) { return may >= 0; });
  }
  /// Whether `bytes` more may be lost at all times [begin, end).
  bool canLose(int32_t begin, int32_t end, int64_t bytes) const {
    return bytes == 0 || *std::min_element(mayLose.begin() + begin, mayLose.begin() + end) >= bytes;
  }
  /// Fills [begin, end) up to `to`, `lost` bytes of it with nothing; less than none to take them back.
  void fill(int32_t begin, int32_t end, int64_t to, int64_t lost) {
    for (int32_t time = begin; time < end; ++time) {
      height[time] = to;
      mayLose[time] -= lost;
    }
  }
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_HEIGHTS_H
