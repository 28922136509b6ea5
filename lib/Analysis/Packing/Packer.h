//===- Packer.h - The search over packings of one component ---------------------===//
//
// A component is a set of items that no lifetime connects to the rest. Heuristics run in a fixed order until
// one meets the target; then the best packing is repaired for as long as the budget lasts.
//
// Example: items of 8, 5 and 6 bytes in [0, 2), [1, 4) and [3, 5). Live are 8, 13, 5, 11 and 6 bytes; first
// fit in this order puts them at 0, 8 and 0, with a top of 13. That is the target, so nothing else is tried.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_PACKER_H
#define DS_LIB_ANALYSIS_PACKING_PACKER_H

#include "Placer.h"

namespace ds::analysis::detail {

struct Component {
  std::vector<Item> items;
  std::vector<Placed> obstacles; ///< taken before anything is placed
  int32_t horizon = 1;           ///< times are in [0, horizon)
  int64_t floor = 0;             ///< nothing lies below
};

struct Packing {
  std::vector<int64_t> offsets;
  int64_t top = 0; ///< highest end of an item or obstacle
};

/// The best packing found: stops at once when `target` is met, and after about `budget` steps, which it
/// lowers by what it used.
Packing pack(const Component &component, int64_t target, int64_t &budget);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_PACKER_H
