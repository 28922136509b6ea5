//===- Skyline.h - Packing from the bottom up -----------------------------------===//
//
// Keeps the upper outline of what is packed and always fills its lowest valley with an item that fits between
// the valley's walls; where none does, the valley rises to its lower wall. Unlike first fit in a fixed order
// it picks items by the place they leave, which wastes less where lifetimes are all different.
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
