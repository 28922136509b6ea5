//===- LateCommands.h - Which commands of an update may be left to the next step -----===//
//
// The commands of one segment that make updates on the host, and what must come after those. For example
//
//   ds.launch @norm ins(%g) outs(%c) on host           stays: %c is a scalar
//   ds.launch @update ins(%m, %g, %c) outs(%m, %b)     is late: it changes the state %m
//   ds.transfer %b to %w on to_device                  is late: it reads what the launch writes
//   ds.launch @count ins(%n) outs(%n) on compute       stays
//
// where the allocations %g and %c are to be carried to the next step, and %b is late commands' own. A unit
// are the late commands that have to keep their order, by what they touch: here all of them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_LATECOMMANDS_H
#define DS_LIB_PASSES_STREAMS_LATECOMMANDS_H

#include "ds/Passes/BufferAccess.h"

#include <optional>
#include <string>

namespace mlir::ds {

/// The late commands of one segment, which must stay as it is while this is asked.
class LateCommands {
public:
  explicit LateCommands(func::FuncOp update);

  /// In issue order.
  ArrayRef<Operation *> commands() const { return late; }
  /// Why they cannot be left to the next step; nothing where they can.
  std::optional<std::string> findFault() const;
  /// The allocations that others than they write.
  SmallVector<AllocOp> findCarried() const;
  /// Unit by unit, as `first`, a segment of the same step, reads what they write to states; what it does not
  /// touch in the end.
  SmallVector<Operation *> inOrderOf(func::FuncOp first) const;

private:
  func::FuncOp update;
  SmallVector<Operation *> late, others;
};

/// Commands that do not stand in front of all others, and before which command they are to stand.
using LateTail = std::pair<SmallVector<Operation *>, Operation *>;
/// Of `late`, the first commands of `func`, for each unit the first command of the compute stream and what
/// comes after it, with the first other command that touches what those do, or the terminator.
SmallVector<LateTail> placeTails(func::FuncOp func, ArrayRef<Operation *> late);

/// Verifies the segments of `module` that update and are not scheduled, and what is carried to them (E8 of
/// ds-verify-scheduled).
LogicalResult verifyLateUpdates(ModuleOp module);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_LATECOMMANDS_H
