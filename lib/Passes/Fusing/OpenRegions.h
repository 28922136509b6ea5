//===- OpenRegions.h - The regions of a block, taken apart ------------------------===//
//
// What of a region is kept and what is computed again is a question about its ops, and so is what may join
// it. So a block's regions are taken apart: their ops stand in their place, each says the work of its region
// and its own layer, and the region that each was in is known beside. Which ops share a kernel stays settled:
// close() makes the same regions of them again. A region that views or joins in its body, which no pass
// makes, stays closed: a command that nothing is known of but what it reads and gives.
//
//   %n, %y = ds.fused(%x) {            %n = ds.rsqrt ...     region 0
//     %n = ds.rsqrt ...          ->    %m = ds.mul ...       region 0
//     %m = ds.mul ...                  %y = ds.convert ...   region 0
//     %y = ds.convert ...
//     ds.yield %n, %y }
//
//===------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_FUSING_OPENREGIONS_H
#define DS_LIB_PASSES_FUSING_OPENREGIONS_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

class OpenRegions {
public:
  /// Takes none apart: each is a command.
  OpenRegions() = default;
  /// Takes the regions of `block` apart.
  explicit OpenRegions(Block &block);

  /// The region that `op` was in; none of what stood outside of all.
  std::optional<unsigned> find(Operation *op) const;
  /// Whether one kernel computes both.
  bool areTogether(Operation *a, Operation *b) const { return a == b || (find(a) && find(a) == find(b)); }
  unsigned size() const { return count; }

  /// Makes the regions again, of those of their ops that are read, and sorts the block. Fails where what was
  /// put between them needs one region both before and behind it.
  LogicalResult close();

private:
  Block *block = nullptr;
  unsigned count = 0;
  DenseMap<Operation *, unsigned> regions;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_FUSING_OPENREGIONS_H
