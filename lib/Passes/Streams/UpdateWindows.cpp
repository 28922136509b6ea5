//===- UpdateWindows.cpp - Memory of the host that windows of updates take in turn ---===//
#include "UpdateWindows.h"

#include "ds/Runtime/Program/Program.h"

using namespace mlir;
using namespace mlir::ds;

static constexpr int64_t kUnit = ::ds::rt::kStorageUnit;

/// `count` elements one after the other on the host.
static BufferType hostType(Type element, int64_t count) {
  return BufferType::getContiguous(RankedTensorType::get(count, element), Space::Host);
}

static Type elementOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getTensor().getElementType();
}

/// Memory of the host for `elements` of the type of `like`, in front of all commands.
AllocOp UpdateWindows::allocate(Value like, int64_t elements) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&func.getBody().front());
  return builder.create<AllocOp>(like.getLoc(), hostType(elementOf(like), elements),
                                 AllocCategory::Workspace);
}

Value UpdateWindows::inRing(Value own, unsigned index, int64_t count) {
  Type element = elementOf(own);
  Ring &ring = rings[{element, index}];
  if (!ring.place)
    ring.place = allocate(own, ringElements);
  int64_t first = ring.next + count > ringElements ? 0 : ring.next;
  ring.next = llvm::alignTo(first + count, kRingStep);
  ring.end = std::max(ring.end, first + count);
  return builder.create<ViewOp>(own.getLoc(), hostType(element, count), ring.place.getBuffer(), first);
}

Value UpdateWindows::inSlot(Value own, unsigned index, int64_t count) {
  Type element = elementOf(own);
  Slots &taken = slots[{element, index}];
  taken.elements = std::max(taken.elements, count);
  while (taken.sets.size() <=
         turn % sets) { // as many as there are windows, no more: each is trimmed in the end
    taken.sets.push_back(allocate(own, kUnit));
    taken.sets.back().setAlignment(kUnit);
  }
  return builder.create<ViewOp>(own.getLoc(), hostType(element, count), taken.sets[turn % sets].getBuffer(),
                                0);
}

void UpdateWindows::trim() {
  for (auto &[key, ring] : rings)
    ring.place.getBuffer().setType(hostType(key.first, ring.end));
  for (auto &[key, taken] : slots)
    for (AllocOp slot : taken.sets) {
      int64_t bytes = llvm::divideCeil(key.first.getIntOrFloatBitWidth(), 8);
      slot.getBuffer().setType(hostType(key.first, llvm::alignTo(taken.elements * bytes, kUnit) / bytes));
    }
}
