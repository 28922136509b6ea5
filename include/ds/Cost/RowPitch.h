//===- RowPitch.h - How far apart rows lie that products read ---------------------===//
#ifndef DS_COST_ROWPITCH_H
#define DS_COST_ROWPITCH_H

#include <cstdint>
#include <optional>

namespace ds::cost {

/// Bytes at a multiple of which tensor cores want a row to begin (NVIDIA, Matrix Multiplication Background
/// User's Guide, section 2.2).
inline constexpr int64_t kRowUnit = 16;

/// Elements from one row to the next, in place of `elements`, where rows of so many elements of
/// `elementBytes` bytes (1, 2, 4 or 8) begin at no multiple of 16 bytes and what is between them is worth it:
/// whole lines of 128 bytes where that makes a row longer by at most 1/64, else whole units of 16 bytes where
/// it is at most 1/16. Empty for all others. 50257 elements of 2 bytes lie 50304 apart, 257 lie 264 apart,
/// and 105 side by side.
std::optional<int64_t> rowPitch(int64_t elements, int64_t elementBytes);

} // namespace ds::cost

#endif // DS_COST_ROWPITCH_H
