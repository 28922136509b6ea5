//===- BufferizeSpaces.cpp - Buffers for what lies in other spaces ------------------===//
//
// A store is made in the place of the state that it becomes, and otherwise in memory of its own in its space;
// a load in the device's memory. Both are copies on streams of their own, to the host and to the device: what
// computes goes on beside them, and each way beside the other.
//
// Storage is reached in two legs, for a disk moves whole units from and to memory of the host alone: one on
// the stream of storage, one on that of copies. What is large goes in pieces, through two pieces of host
// memory in turn, so that the second leg of a piece runs beside the first of the next:
//
//   storage     %m[0..] to %slot0     %m[n..] to %slot1     (waits) %m[2n..] to %slot0
//   to_device                         %slot0 to %x[0..]     %slot1 to %x[n..]     ...
//
// The two pieces are a function's, whatever it moves; the order of commands is that of the events of their
// use.
//
//===---------------------------------------------------------------------------===//
#include "FunctionBufferizer.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::ds;

static constexpr int64_t kUnit = ::ds::rt::kStorageUnit;
static constexpr unsigned kSlots = 2; ///< more would only wait for the slower leg

static int64_t elementBytes(Type type) { return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8); }

void FunctionBufferizer::alignToUnit(AllocOp alloc) { alloc.setAlignment(kUnit); }

/// The next piece of staging memory, as `type`.
Value FunctionBufferizer::nextStaging(RankedTensorType type, Location loc) {
  Type element = type.getElementType();
  Staging &ring = staging[element];
  if (ring.slots.size() < kSlots) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&func.getBody().front());
    int64_t elements = std::max<int64_t>(stagingBytes / kUnit, 1) * kUnit / elementBytes(element);
    Value slot =
        allocate(RankedTensorType::get(elements, element), AllocCategory::Workspace, loc, Space::Host);
    ring.slots.push_back(slot.getDefiningOp<AllocOp>());
    alignToUnit(ring.slots.back());
  }
  ring.elements = std::max(ring.elements, type.getNumElements());
  Value slot = ring.slots[ring.next++ % kSlots].getBuffer();
  Value view = builder.create<ViewOp>(loc, BufferType::getContiguous(type, Space::Host), slot, 0);
  views[view] = slot;
  return view;
}

/// Leaves staging memory as large as its largest piece, in whole units.
void FunctionBufferizer::trimStaging() {
  for (auto &[element, ring] : staging) {
    int64_t units = llvm::divideCeil(ring.elements * elementBytes(element), kUnit);
    auto type = RankedTensorType::get(units * kUnit / elementBytes(element), element);
    for (AllocOp slot : ring.slots)
      slot.getBuffer().setType(BufferType::getContiguous(type, Space::Host));
  }
}

void FunctionBufferizer::transferPiece(Value from, Value to, Location loc) {
  Value slot = nextStaging(bufferType(from).getTensor(), loc);
  builder.create<TransferOp>(loc, from, slot);
  builder.create<TransferOp>(loc, slot, to);
}

void FunctionBufferizer::transfer(Value from, Value to, Location loc) {
  if (bufferType(from).getSpace() != Space::Nvme && bufferType(to).getSpace() != Space::Nvme) {
    builder.create<TransferOp>(loc, from, to);
    return;
  }
  RankedTensorType type = bufferType(from).getTensor();
  int64_t count = type.getNumElements();
  int64_t most = std::max<int64_t>(stagingBytes / kUnit, 1) * kUnit / elementBytes(type.getElementType());
  if (count <= most)
    return count > 0 ? transferPiece(from, to, loc) : void();
  for (int64_t first = 0; first < count; first += most) {
    StridedView piece{first, {std::min(most, count - first)}, {1}};
    transferPiece(createView(from, piece, loc), createView(to, piece, loc), loc);
  }
}

// What a store or load gives has a type of its own only until the walk: see inlineHostRegions.

void FunctionBufferizer::bufferizeStore(StoreOp op) {
  Value value = op->getOperand(0), result = op->getResult(0);
  Value source = toContiguous(buffers.at(value), op.getLoc());
  Destination destination = findDestination(result);
  Value target = destination ? *destination : findVacated(op);
  if (!target)
    target = allocate(tensorType(value), categoryOf(value), op.getLoc(), spaceOf(result));
  transfer(source, target, op.getLoc());
  bind(result, target);
}

void FunctionBufferizer::bufferizeLoad(LoadOp op) {
  Value result = op->getResult(0);
  Value target = makeBuffer(result);
  if (!bufferType(target).isContiguous())
    target = allocate(tensorType(result), categoryOf(result), op.getLoc());
  transfer(buffers.at(op->getOperand(0)), target, op.getLoc());
  bind(result, target);
}

// What the host computes on is moved whole: ds-split-updates has it come in pieces, where it may.
void FunctionBufferizer::bufferizeMove(MoveOp op) {
  Value source = buffers.at(op->getOperand(0)), result = op->getResult(0);
  if (spaceOf(result) == Space::Host) {
    Value target = allocate(tensorType(result), AllocCategory::Workspace, op.getLoc(), Space::Host);
    alignToUnit(target.getDefiningOp<AllocOp>());
    builder.create<TransferOp>(op.getLoc(), source, target);
    return bind(result, target);
  }
  auto place = source.getDefiningOp<AllocOp>(); // windows, and what lives on the host, begin anywhere
  if (!place) {
    source = toPrivate(source, op.getLoc());
    place = source.getDefiningOp<AllocOp>();
  }
  alignToUnit(place);
  Destination destination = findDestination(result);
  Value target =
      destination ? *destination : allocate(tensorType(result), categoryOf(result), op.getLoc(), Space::Nvme);
  builder.create<TransferOp>(op.getLoc(), source, target);
  bind(result, target);
}

/// What is presumed, and why, stays in memory of its own: readers are found by it.
void FunctionBufferizer::bufferizePresume(PresumeOp op) {
  Value truth = buffers.at(op.getTruth()), guess = buffers.at(op.getGuess()),
        wrong = buffers.at(op.getWrong());
  builder.create<PresumedOp>(op.getLoc(), truth, guess, wrong);
  bind(op.getResult(), truth);
  for (Value buffer : {truth, guess, wrong})
    rootLastUse[rootOf(buffer)] = UINT_MAX;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Puts the ops of `host` in its place, each saying of work and layer what the region does.
static void dissolve(HostOp host, llvm::function_ref<void(Value)> isThere) {
  Block &body = host.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), host->getOperands()))
    argument.replaceAllUsesWith(operand);
  for (auto [result, value] : llvm::zip_equal(host->getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(value);
  body.getTerminator()->erase();
  for (Operation &op : llvm::make_early_inc_range(body)) {
    op.moveBefore(host);
    copyWork(host, &op);
    llvm::for_each(op.getResults(), isThere);
  }
  host.erase();
}

void FunctionBufferizer::inlineHostRegions() {
  Block &block = func.getBody().front();
  auto untype = [&](Value value) {
    if (auto stored = dyn_cast<StoredType>(value.getType())) {
      spaces[value] = stored.getSpace();
      value.setType(stored.getTensor());
    }
  };
  llvm::for_each(block.getArguments(), untype);
  for (Operation &op : block)
    if (!isa<HostOp>(op))
      llvm::for_each(op.getResults(), untype);
  for (HostOp host : llvm::make_early_inc_range(block.getOps<HostOp>()))
    dissolve(host, [&](Value value) { spaces[value] = Space::Host; });
}
