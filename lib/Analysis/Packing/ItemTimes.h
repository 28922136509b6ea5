//===- ItemTimes.h - The times of items as a dense range --------------------------===//
//
// Items that live at [10, 40) and [20, 30) live at [0, 3) and [1, 2) of the three stretches between their
// four times.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_ITEMTIMES_H
#define DS_LIB_ANALYSIS_PACKING_ITEMTIMES_H

#include "Placer.h"

#include <algorithm>
#include <numeric>

namespace ds::analysis::detail {

/// Replaces the times of `items` by the ranks of those at which something begins or ends. Returns how many
/// stretches lie between them: nothing lives after the last end.
inline size_t rankTimes(std::vector<Item> &items) {
  std::vector<int32_t> times;
  for (const Item &item : items)
    times.insert(times.end(), {item.begin, item.end});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto rank = [&](int32_t time) {
    return int32_t(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (Item &item : items) {
    item.begin = rank(item.begin);
    item.end = rank(item.end);
  }
  return times.empty() ? 0 : times.size() - 1;
}

/// Of an order of `items` by begin: where those of each of so many times start, and where the last ones end.
inline std::vector<int32_t> startsByBegin(const std::vector<Item> &items, size_t times) {
  std::vector<int32_t> starts(times + 1);
  for (const Item &item : items)
    ++starts[item.begin + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_ITEMTIMES_H
