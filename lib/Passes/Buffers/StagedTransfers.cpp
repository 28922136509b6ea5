//===- StagedTransfers.cpp - Copies between spaces, through pieces of host memory --===//
#include "StagedTransfers.h"

#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ds;

static constexpr int64_t kUnit = ::ds::rt::kStorageUnit;
static constexpr unsigned kSlots = 2; ///< more would only wait for the slower leg

static int64_t elementBytes(Type type) { return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8); }

/// The most elements that a piece holds: whole units, one at least.
int64_t StagedTransfers::mostElements(Type element) const {
  return std::max<int64_t>(stagingBytes / kUnit, 1) * kUnit / elementBytes(element);
}

/// The next piece of staging memory, as `type`.
Value StagedTransfers::nextStaging(RankedTensorType type, Location loc) {
  Type element = type.getElementType();
  Staging &ring = staging[element];
  if (ring.slots.size() < kSlots) {
    OpBuilder::InsertionGuard guard(emitter.builder);
    emitter.builder.setInsertionPointToStart(&func.getBody().front());
    int64_t elements = mostElements(element);
    Value slot = emitter.allocate(RankedTensorType::get(elements, element), AllocCategory::Workspace, loc,
                                  Space::Host);
    ring.slots.push_back(slot.getDefiningOp<AllocOp>());
    alignToUnit(ring.slots.back());
  }
  ring.elements = std::max(ring.elements, type.getNumElements());
  Value slot = ring.slots[ring.next++ % kSlots].getBuffer();
  Value view = emitter.builder.create<ViewOp>(loc, BufferType::getContiguous(type, Space::Host), slot, 0);
  table.addView(view, slot);
  return view;
}

DenseSet<Operation *> StagedTransfers::getSlots() const {
  DenseSet<Operation *> slots;
  for (const auto &[element, ring] : staging)
    slots.insert(ring.slots.begin(), ring.slots.end());
  return slots;
}

void StagedTransfers::trim() {
  for (auto &[element, ring] : staging) {
    int64_t units = llvm::divideCeil(ring.elements * elementBytes(element), kUnit);
    auto type = RankedTensorType::get(units * kUnit / elementBytes(element), element);
    for (AllocOp slot : ring.slots)
      slot.getBuffer().setType(BufferType::getContiguous(type, Space::Host));
  }
}

void StagedTransfers::transferPiece(Value from, Value to, Location loc) {
  Value slot = nextStaging(bufferType(from).getTensor(), loc);
  emitter.builder.create<TransferOp>(loc, from, slot);
  emitter.builder.create<TransferOp>(loc, slot, to);
}

void StagedTransfers::transfer(Value from, Value to, Location loc) {
  if (bufferType(from).getSpace() != Space::Nvme && bufferType(to).getSpace() != Space::Nvme) {
    emitter.builder.create<TransferOp>(loc, from, to);
    return;
  }
  RankedTensorType type = bufferType(from).getTensor();
  int64_t count = type.getNumElements();
  int64_t most = mostElements(type.getElementType());
  if (count <= most)
    return count > 0 ? transferPiece(from, to, loc) : void();
  for (int64_t first = 0; first < count; first += most) {
    StridedView piece{first, {std::min(most, count - first)}, {1}};
    transferPiece(emitter.createView(from, piece, loc), emitter.createView(to, piece, loc), loc);
  }
}
