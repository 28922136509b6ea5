//===- WasteSearch.h - Packing below a given height, depth first -------------------===//
//
// Below a given height, what may be lost at a time is known: the height less the sizes of all that live then.
// A search that fills valleys (Skyline.h) and keeps account of what it has lost can turn back as soon as a
// valley has no item that fits without losing more. Where nothing may be lost, as in packings that are full,
// nearly every move is forced. After Lesh, Marks, McMahon and Mitzenmacher, "Exhaustive approaches to 2D
// rectangular perfect packings" (2004), which handles the case without waste; the valley with the fewest
// moves goes first, as Haralick and Elliott's "fail first" (1980) has it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_WASTESEARCH_H
#define DS_LIB_ANALYSIS_PACKING_WASTESEARCH_H

#include "Placer.h"

#include <optional>

namespace ds::analysis::detail {

/// Addresses of `items` in [floor, top), or nothing if none were found in four moves for each item, for a
/// search that goes wrong does so early and another order helps more than patience, or when `steps`, to which
/// the work is added, reaches `endSteps`. `seed` shuffles moves that seem alike; the same seed finds the
/// same. For up to some thousand items: a move looks at all times, and the search is as deep as there are
/// items.
std::optional<std::vector<int64_t>> packBelow(const std::vector<Item> &items, int64_t floor, int64_t top,
                                              uint32_t seed, int64_t endSteps, int64_t &steps);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_WASTESEARCH_H
