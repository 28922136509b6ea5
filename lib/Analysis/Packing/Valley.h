//===- Valley.h - Where a search that fills the skyline puts the next item ---------===//
//
// In an outline of heights 4, 1, 1 and 3 the valley at time 1 is [1, 3), of height 1 between walls of 4 and
// 3: what is put there may live two times, and fills it up to the lower wall with 2 bytes.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_VALLEY_H
#define DS_LIB_ANALYSIS_PACKING_VALLEY_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace ds::analysis::detail {

constexpr int64_t kNoWall = std::numeric_limits<int64_t>::max();

/// A stretch [begin, end) of times of one height, and the heights to its sides, in bytes.
struct Valley {
  int32_t begin = 0, end = 0;
  int64_t height = 0, leftWall = kNoWall, rightWall = kNoWall;
  int64_t lowerWall() const { return std::min(leftWall, rightWall); }
};

/// The stretch of `heights`, by time, whose first time is `begin`.
inline Valley valleyAt(const std::vector<int64_t> &heights, int32_t begin) {
  const auto count = int32_t(heights.size());
  Valley valley{begin, begin + 1, heights[begin]};
  while (valley.end < count && heights[valley.end] == valley.height)
    ++valley.end;
  if (begin > 0)
    valley.leftWall = heights[begin - 1];
  if (valley.end < count)
    valley.rightWall = heights[valley.end];
  return valley;
}

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_VALLEY_H
