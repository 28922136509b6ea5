//===- SegmentParts.h - What of a segment is forward, backward, update and message --===//
//
// A command goes with its work, unless it has to stay behind one of a later part, with which it shares
// memory: then it belongs to that part. Messages are parts of their own, for they run beside what computes:
// what forward receives and sends, and what backward does. Each of these is one exchange.
//
//===------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STAGES_SEGMENTPARTS_H
#define DS_LIB_PASSES_STAGES_SEGMENTPARTS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

namespace mlir::ds {

/// In the order in which a micro-batch comes to them.
enum class SegmentPart { ReceiveValue, Forward, SendValue, ReceiveGradient, Backward, SendGradient, Update };
inline constexpr unsigned kSegmentParts = 7;

inline bool isTransfer(SegmentPart part) {
  return part != SegmentPart::Forward && part != SegmentPart::Backward && part != SegmentPart::Update;
}

/// Whether `command` is of the backward half of a micro-batch.
bool isBehindForward(Operation *command);

class SegmentParts {
public:
  /// Divides the commands of `func`, which is on buffers. Fails with a diagnostic where that cannot be done:
  /// where a message waits for what comes behind it.
  static FailureOr<SegmentParts> of(func::FuncOp func);

  ArrayRef<Operation *> commands(SegmentPart part) const { return parts[unsigned(part)]; }
  /// The allocations that more than one part touches, in order.
  ArrayRef<AllocOp> getShared() const { return shared; }

private:
  std::array<SmallVector<Operation *>, kSegmentParts> parts;
  SmallVector<AllocOp> shared;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_SEGMENTPARTS_H
