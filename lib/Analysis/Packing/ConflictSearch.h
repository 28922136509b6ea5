//===- ConflictSearch.h - Packing below a given height, with backjumping -----------===//
//
// Fills the lowest valley of the skyline with one of the items that fit, or declares that this item does not
// lie at that height, until a valley that nothing fits into cannot rise without losing more than the height
// allows (the section inference of Moffitt, "MiniMalloc", ASPLOS 2023, section 4.2, on every time). Such a
// failure depends on what lies at its own times only, so that decisions about items that live at other times
// are skipped on the way back: conflict-directed backjumping (Prosser, "Hybrid algorithms for the constraint
// satisfaction problem", 1993), which subsumes the packing of parts apart where nothing is left to place
// across. Best where WasteSearch.h thrashes: many times at which nothing may be lost, between which lifetimes
// are loose.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_CONFLICTSEARCH_H
#define DS_LIB_ANALYSIS_PACKING_CONFLICTSEARCH_H

#include "Placer.h"

#include <optional>

namespace ds::analysis::detail {

/// Addresses of `items` in [floor, top) bytes, or nothing if none were found in four placements for each item
/// or when `steps`, to which the work is added (a step is about a nanosecond), reaches `endSteps`. `seed`
/// chooses the order in which items are tried and shuffles it; the same seed finds the same. A placement
/// takes O(times + items that begin in its valley); memory is O(items); the search is as deep as there are
/// items.
std::optional<std::vector<int64_t>> packWithBackjumps(const std::vector<Item> &items, int64_t floor,
                                                      int64_t top, uint32_t seed, int64_t endSteps,
                                                      int64_t &steps);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_CONFLICTSEARCH_H
