//===- LowestHoles.h - Below which address nothing more fits -----------------------===//
//
// First fit looks for the lowest hole among all that was placed below it, which takes longer and longer where
// thousands of values live from forward to backward: they are stacked without a gap, and each search climbs
// the stack anew. So the time line is cut into stretches, and each keeps an address below which it has no
// hole any more, as far as that follows from what lives through the whole of the stretch: no item that lives
// at any time of the stretch needs to be looked for below. Where most is live a stretch is one time long, for
// there most lives through all of it. As a hole may be too small for one item and not for another, sizes fall
// into classes with an address each. The price: what is placed writes to all stretches that it lives through.
//
// For example, two rectangles at [0, 64) and [96, 128) live through a stretch: below 64 nothing of 32 bytes
// fits, and below 128 nothing of 64.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_LOWESTHOLES_H
#define DS_LIB_ANALYSIS_PACKING_LOWESTHOLES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::analysis::detail {

struct Item;
struct Placed;

class LowestHoles {
public:
  /// For `items`, whose times are in [0, horizon); nothing is placed below `floor`. Where there are few items
  /// a search is short, and nothing is kept.
  LowestHoles(const std::vector<Item> &items, int32_t horizon, int64_t floor);

  /// Forgets everything that was placed.
  void clear();

  /// Takes note of a rectangle that is taken from now on.
  void fill(const Placed &placed);

  /// An address below which `item` has no place.
  int64_t below(const Item &item) const;

private:
  int64_t floor;
  std::vector<uint16_t> stretchAt; ///< by time, to the horizon
  std::vector<int32_t> begins;     ///< of the stretches; then the horizon
  std::vector<int64_t> least;      ///< bytes of the smallest item of each class, ascending
  std::vector<int64_t> lowest;     ///< [class][stretch]: no hole for an item of the class below
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_LOWESTHOLES_H
