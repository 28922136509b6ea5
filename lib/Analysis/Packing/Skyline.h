//===- Skyline.h - Packing from the bottom up -----------------------------------===//
//
// Keeps the upper outline of what is packed and always fills its lowest valley with an item that fits between
// the valley's walls; where none does, the valley rises to its lower wall. Unlike first fit in a fixed order
// it picks items by the place they leave, which wastes less where lifetimes are all different.
//
// Example: what is packed reaches up to 4 at times [0, 2), to 1 at [2, 5) and to 3 at [5, 8). The lowest
// valley, [2, 5) at 1, takes an item of 3 bytes that lives in [2, 5), and is 4 high then. Were the only item
// left one that lives in [1, 6), the valley would rise to 3 with 2 bytes wasted for 3 moments, and then to 4.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_SKYLINE_H
#define DS_LIB_ANALYSIS_PACKING_SKYLINE_H

#include "Placer.h"

namespace ds::analysis::detail {

/// Which item fills a valley.
enum class Filling : uint8_t {
  Longest,  ///< the one that lives longest
  Largest,  ///< the one of most bytes times time
  Touching, ///< one that touches both walls, then one, then none; the longest of equals
  Level,    ///< one whose top meets a wall's; then as Touching
};

/// How much longer than it does an item counts as living when it is compared with others, in 1/kUnitWeight.
using Weights = std::vector<int64_t>;
constexpr int64_t kUnitWeight = 1 << 10, kMaxWeight = 1 << 30;

/// Addresses of `items` above `floor`. Adds the work done to `steps`.
std::vector<int64_t> fillValleys(const std::vector<Item> &items, const Weights &weights, int32_t horizon,
                                 int64_t floor, Filling filling, int64_t &steps);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_SKYLINE_H
