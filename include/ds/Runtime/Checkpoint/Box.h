//===- Box.h - Parts of tensors that others can name -----------------------------===//
//
// A rank holds a range of a flat list of elements; files that others read hold boxes, a range in each
// dimension. Any range is a few boxes: whole rows, and what is left of a row before and behind them, which is
// such a range again with a dimension less.
//
//   tensor [4, 6], elements 3 to 19:    0  1  2 [3  4  5]      head: row 0, columns 3 to 5
//                                      [6  7  8  9 10 11       body: rows 1 and 2
//                                      12 13 14 15 16 17]
//                                     [18 19] 20 21 22 23      tail: row 3, columns 0 and 1
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_BOX_H
#define DS_RUNTIME_CHECKPOINT_BOX_H

#include "ds/Runtime/Program/Layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ds::rt {

/// [offsets[d], offsets[d] + shape[d]) in each dimension d of a tensor.
struct Box {
  std::vector<int64_t> offsets, shape;

  uint64_t elements() const;
  bool operator==(const Box &) const = default;
};

/// Elements [first, first + count) of a tensor of `shape`, in row-major order, as boxes in that order: at
/// most 2 * rank - 1 of them. None where `count` is 0.
std::vector<Box> boxesOf(std::span<const int64_t> shape, uint64_t first, uint64_t count);

/// The elements of `box` in a tensor of `shape` as runs, ascending, `at` counting the box's own elements.
/// Requires a box that lies within the shape.
std::vector<ElementRun> runsOf(const Box &box, std::span<const int64_t> shape);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_BOX_H
