//===- Layout.h - Which elements of a state a rank holds -----------------------===//
//
// A state is cut twice. First, a dimension may be cut into equal parts along axes of the mesh, as tensor
// parallelism does; what a rank has of the state then is a smaller tensor, its local one. Second, the local
// tensors of several states, one flat list after another, may fill a bucket that ranks along other axes hold
// together in equal shards, as ZeRO does: shards end where they end, not where rows do. Ranks that differ
// along none of these axes hold the same elements.
//
//   state [4, 6], dimension 1 cut along tp = 2, bucket along dp = 2 in shards of 8 elements, offset 2
//
//        0  1  2 |  3  4  5       local tensor of tp 0: elements 0 1 2 6 7 8 12 13 14 18 19 20
//        6  7  8 |  9 10 11       its bucket:           . . 0 1 2 6 7 8 | 12 13 14 18 19 20 . .
//       12 13 14 | 15 16 17       rank dp 1, tp 0 holds the second half, in two runs:
//       18 19 20 | 21 22 23         elements 12 13 14 at 0, elements 18 19 20 at 3
//
// Cuts count in the dimensions of a view, a shape that refines the state's own: a fused QKV [2304, 768] seen
// as [3, 12, 64, 768] is cut by heads along its second dimension, and a rank's part is then three ranges of
// rows. A view may have more rows than the state, so that they can be cut at all: 50257 words of a table are
// seen as 50264 rows, of which the last 7 are padding. Padding is zero, and in memory alone: files, names and
// initial values know only what exists.
//
//   state [6, 2], view [3, 2, 2], dimension 1 cut along tp = 2: tp 0 has rows 0, 2, 4 and tp 1 rows 1, 3, 5
//   state [5, 2], view [6, 2], dimension 0 cut along tp = 2:    tp 1 has rows 3 and 4, and one of padding
//
// Where what is fused differs in size the cut dimension has pieces, each of which is cut by itself: query,
// key and value with fewer key heads than heads.
//
//   state [8, 2], pieces [4, 2, 2], dimension 0 cut along tp = 2: tp 1 has rows 2, 3, 5 and 7
//
// Whatever reads, makes or writes states goes through runs: rows of elements that lie next to each other both
// in the whole state and in a rank's memory. Nothing here knows programs: planners and checkpoints use it
// too.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_LAYOUT_H
#define DS_RUNTIME_PROGRAM_LAYOUT_H

#include "ds/Runtime/Program/Mesh.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// Elements are counted in row-major order: those of the whole state are its logical ones, those of a local
/// tensor its local ones. A view leaves their order as it is.
struct Layout {
  std::vector<AxisSet> cuts;  ///< by dimension of the view: along which axes it is cut; empty: none is
  AxisSet bucket;             ///< of the ranks that hold the bucket together; empty: there is none
  uint64_t offset = 0;        ///< of the local tensor's first element in the bucket, in elements
  uint64_t shardElements = 0; ///< of the bucket, by rank
  /// Each dimension of the state is the product of some that follow each other here. Empty: it is seen as it
  /// is.
  std::vector<int64_t> view = {};
  /// Rows of the view, entries of its dimension 0, that the state has; what is behind them is padding.
  /// Absent: it has them all.
  std::optional<uint64_t> existing = {};
  /// Sizes of what lies one behind the other in the only dimension of the view that is cut, where each is cut
  /// into equal parts and a rank has its part of each. Empty: all of the dimension is one.
  std::vector<int64_t> pieces = {};

  bool isBucketed() const { return !bucket.isEmpty(); }
  /// Along which axes ranks hold different elements.
  AxisSet axes() const;
  bool operator==(const Layout &) const = default;
};

/// What keeps `layout` from being one of states of this shape on this mesh, with both values; empty where
/// nothing does. Requires sizes whose product does not overflow; safe on any layout.
std::string findMistake(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape);

// What follows requires a layout without mistakes.

/// The shape with the dimensions of `shape` of what has `sizes` in those of the view.
std::vector<int64_t> packedShape(const Layout &layout, std::span<const int64_t> shape,
                                 std::span<const int64_t> sizes);
/// The shape of a local tensor, of as many dimensions as the state and with its padding.
std::vector<int64_t> localShape(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape);
/// Elements of a local tensor, with its padding.
uint64_t localElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape);

/// The ranks that hold together what `rank` and others with other parts do, each part once, in the order of
/// ranks. Those of rank 0 are the ones that write a state down: the first of all replicas.
std::vector<uint32_t> holders(const Mesh &mesh, const Layout &layout, uint32_t rank);

/// Entries [first, first + count) of a dimension of a state.
struct IndexRange {
  uint64_t first = 0, count = 0;
  bool operator==(const IndexRange &) const = default;
};
/// What entries of the local tensor's dimension `dimension` are in the state, in order. Entries of padding
/// lie behind the state's own.
std::vector<IndexRange> localRanges(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                                    uint32_t rank, size_t dimension);

/// Local elements [first, first + count), which lie from element `at` of the rank's buffer on. Elements of
/// padding are not among them.
struct HeldElements {
  uint64_t first = 0, count = 0, at = 0;
};
HeldElements heldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                          uint32_t rank);

/// Likewise of padding.
HeldElements heldPadding(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape,
                         uint32_t rank);

/// The most elements that any rank holds, without padding.
uint64_t mostHeldElements(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape);

/// Logical elements [first, first + count), which lie from element `at` of the rank's buffer on.
struct ElementRun {
  uint64_t first = 0, count = 0, at = 0;
  bool operator==(const ElementRun &) const = default;
};

/// Goes through what a rank holds of a state. Runs come in ascending order of `first` and of `at`, without
/// gaps in `at`: together they are heldElements.
class ElementRuns {
public:
  ElementRuns(const Mesh &mesh, const Layout &layout, std::span<const int64_t> shape, uint32_t rank);

  /// The next run, or its beginning where it goes on at or behind logical element `end` or has more than
  /// `most` elements; nothing where all that is left lies there.
  std::optional<ElementRun> next(uint64_t end = UINT64_MAX, uint64_t most = UINT64_MAX);

private:
  /// A dimension of the view of the local tensor, those behind the last cut one being part of it.
  struct Dimension {
    uint64_t size;                     ///< local
    uint64_t start;                    ///< logical elements before the rank's first along it
    uint64_t stride;                   ///< logical elements from one to the next
    std::vector<uint64_t> starts = {}; ///< those before each, where they are not `stride` apart
  };
  uint64_t logicalOf(uint64_t local) const;
  void addPieces(const Mesh &mesh, const Layout &layout, uint32_t rank, size_t d, uint64_t stride);

  std::vector<Dimension> outer; ///< slowest first; the dimensions that runs do not go along
  uint64_t block = 1;           ///< elements of a whole run
  uint64_t start = 0;           ///< logical elements before the first of a block
  uint64_t local = 0, last = 0; ///< what is left: local elements [local, last)
  uint64_t at = 0;              ///< of `local` in the buffer
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_LAYOUT_H
