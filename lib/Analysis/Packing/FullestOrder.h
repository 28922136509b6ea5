//===- FullestOrder.h - Orders for first fit that begin where memory is full ----===//
//
// What lives at the fullest moment must be stacked without a gap, in whatever order; that order is free, and
// all else has room beside it. So items are taken by how full the fullest moment of their life is. A training
// step is fullest where forward ends or gradients are summed up, and lifetimes nest around that: stacked by
// begin, what is freed on either side of it lies together on top. First fit then finds the bound where orders
// by lifetime or size alone put something small and long-lived into the middle of what is free. The price:
// nothing is gained where many moments are equally full.
//
// Example: 8 bytes in [0, 1), 1 in [0, 5), 5 in [2, 4), 6 in [3, 4) and 3 in [4, 6). Time 3 is fullest, with
// 12 bytes, and time 0 next, with 9: largest first, the order is 6, 5 and 1 of time 3, then 8 of time 0, then
// 3.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_FULLESTORDER_H
#define DS_LIB_ANALYSIS_PACKING_FULLESTORDER_H

#include "Placer.h"

#include <array>

namespace ds::analysis::detail {

/// Which goes first of items that share their fullest moment.
enum class AtFullest : uint8_t {
  Largest,
  Widest, ///< what lives furthest to one side of the moment
  First,  ///< what begins first
  Last,   ///< what ends last
};
inline constexpr std::array kAtFullest = {AtFullest::Largest, AtFullest::Widest, AtFullest::First};
/// Those that leave holes which best fit keeps; it takes longer.
inline constexpr std::array kAtFullestByBest = {AtFullest::Last, AtFullest::First};

/// Bytes that are live at each time, to the horizon.
std::vector<int64_t> liveBytes(const std::vector<Item> &items, int32_t horizon);

/// Whether such orders say anything: at most a quarter of the times are full to 90 %.
bool hasFullestMoments(const std::vector<Item> &items, int32_t horizon);

/// Indices of `items`, whose times are in [0, horizon), by the bytes that are live at the fullest moment of
/// their life, most first; those of one moment by `among`.
std::vector<int32_t> orderByFullest(const std::vector<Item> &items, int32_t horizon, AtFullest among);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_FULLESTORDER_H
