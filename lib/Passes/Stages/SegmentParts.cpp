//===- SegmentParts.cpp - What of a segment is forward, backward, update and message -===//
#include "SegmentParts.h"

#include "Support/Exchanges.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isBehindForward(Operation *command) {
  const Work work = getWork(command).value_or(Work::Forward);
  return work == Work::Recompute || work == Work::Backward;
}

/// The part that `op` says.
static SegmentPart saidPart(Operation *op) {
  const Work work = getWork(op).value_or(Work::Backward);
  const bool isForward = work == Work::Forward;
  if (work == Work::Update)
    return SegmentPart::Update;
  auto message = dyn_cast<CommunicateOp>(op);
  if (!message || !isMessage(op))
    return isForward ? SegmentPart::Forward : SegmentPart::Backward;
  if (message.getKind() == CollectiveKind::Recv)
    return isForward ? SegmentPart::ReceiveValue : SegmentPart::ReceiveGradient;
  return isForward ? SegmentPart::SendValue : SegmentPart::SendGradient;
}

/// The part that a command of `part` is in when it has to stay behind one of `before`: the next that
/// computes, where that one is a message.
static SegmentPart behind(SegmentPart part, SegmentPart before) {
  switch (before) {
  case SegmentPart::ReceiveValue:
  case SegmentPart::Forward:
    return part;
  case SegmentPart::SendValue:
  case SegmentPart::ReceiveGradient:
  case SegmentPart::Backward:
    return std::max(part, part == SegmentPart::SendGradient ? part : SegmentPart::Backward);
  case SegmentPart::SendGradient:
  case SegmentPart::Update:
    return SegmentPart::Update;
  }
  llvm_unreachable("all parts are known");
}

namespace {
/// What has touched a root so far.
struct Touch {
  BufferAccess access;
  SegmentPart part;
};
struct Touches {
  SmallVector<Touch> reads, writes;

  void add(const BufferAccess &access, SegmentPart part) {
    (access.isWrite ? writes : reads).push_back({access, part});
  }
  /// The part of a command that says `part`, and touches `access` now.
  SegmentPart partFor(const BufferAccess &access, SegmentPart part) const {
    for (const SmallVector<Touch> *before : {&writes, access.isWrite ? &reads : nullptr})
      for (const Touch &touch : before ? ArrayRef(*before) : ArrayRef<Touch>())
        if (touch.part != part && access.conflictsWith(touch.access))
          part = behind(part, touch.part);
    return part;
  }
  /// Whether one part alone, which computes, has touched it, if any.
  bool isOfOne() const {
    std::optional<SegmentPart> first;
    for (const SmallVector<Touch> *each : {&reads, &writes})
      for (const Touch &touch : *each) {
        if (isTransfer(touch.part) || first.value_or(touch.part) != touch.part)
          return false;
        first = touch.part;
      }
    return true;
  }
};
} // namespace

FailureOr<SegmentParts> SegmentParts::of(func::FuncOp func) {
  SegmentParts result;
  DenseMap<Value, Touches> touched;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>()) {
    const SegmentPart said = saidPart(command);
    SegmentPart part = said;
    const SmallVector<BufferAccess> accesses = accessesOf(command);
    for (const BufferAccess &access : accesses)
      part = touched[access.root].partFor(access, part);
    if (isTransfer(said) && part != said)
      return command->emitOpError("expects a message of forward or backward to wait for nothing that is done "
                                  "after it");
    for (const BufferAccess &access : accesses)
      touched[access.root].add(access, part);
    result.parts[unsigned(part)].push_back(command);
  }
  for (auto alloc : func.getBody().front().getOps<AllocOp>())
    if (!touched[alloc.getBuffer()].isOfOne())
      result.shared.push_back(alloc);
  return std::move(result);
}
