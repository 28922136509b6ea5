//===- ReuseDistance.h - How long ago a command's memory was touched ---------------===//
//
// A kernel finds in a cache what few bytes were touched after, and streams the rest from memory: a gradient
// of a bias that sums what the command before it wrote is over in a third of the time that it takes at the
// end of backward. Memory is followed in blocks of the arena, for a fresh buffer lies where another one was.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PLANNER_REUSEDISTANCE_H
#define DS_LIB_PLANNER_REUSEDISTANCE_H

#include "../Analysis/Packing/TouchedBlocks.h"
#include "ds/Dialect/Ds.h"

namespace mlir::ds {

class ReuseDistance {
public:
  /// For each operand of `command`, the bytes that commands touched since they touched it, `command` itself
  /// counted; infinite where none did. Commands come in the order of issue.
  SmallVector<double> touch(Operation *command);

private:
  double touchBlocks(const void *root, int64_t begin, int64_t end);

  llvm::DenseMap<const void *, ::ds::analysis::detail::TouchedBlocks> blocks; ///< by root
  double touched = 0;
};

} // namespace mlir::ds

#endif // DS_LIB_PLANNER_REUSEDISTANCE_H
