//===- LocalBoxes.h - A rank's part of a state as boxes ---------------------------===//
//
// What a rank writes of a state is a range of its local tensor. That is a few boxes there (Box.h), and where
// a view is cut each of them is one for each range of rows or columns that lies together in the state: a
// fused QKV that is cut by heads has three. Along columns such a box is not one run of the rank's memory but
// one from each row.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINT_LOCALBOXES_H
#define DS_LIB_RUNTIME_CHECKPOINT_LOCALBOXES_H

#include "ds/Runtime/Checkpoint/ShardPlan.h"

#include <span>
#include <vector>

namespace ds::rt {

struct LocalBox {
  Box box;                     ///< in the state
  uint64_t first = 0;          ///< its first element in the local tensor
  std::vector<Repeat> repeats; ///< of its runs there
};

/// Local elements [first, first + count) of `rank`, none of which is padding, in ascending order of their
/// first elements.
std::vector<LocalBox> localBoxesOf(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                                   uint32_t rank, uint64_t first, uint64_t count);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINT_LOCALBOXES_H
