//===- BufferAccess.cpp - Which bytes a command touches -------------------------===//
#include "ds/Passes/BufferAccess.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isComputeCommand(Operation *op) {
  auto command = dyn_cast<ScheduledOpInterface>(op);
  return command && command.computes() && command.getStream() == StreamKind::Compute;
}

Value mlir::ds::rootOfBuffer(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewOp>())
    buffer = view.getSource();
  return buffer;
}

/// Bytes from the first to the last element of `type`.
static int64_t spanBytes(BufferType type) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getTensor().getShape(), type.getStrides())) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * llvm::divideCeil(type.getTensor().getElementTypeBitWidth(), 8);
}

BufferAccess mlir::ds::windowOf(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  int64_t element = llvm::divideCeil(type.getTensor().getElementTypeBitWidth(), 8);
  BufferAccess access;
  access.end = spanBytes(type);
  for (; auto view = buffer.getDefiningOp<ViewOp>(); buffer = view.getSource()) {
    int64_t offset = static_cast<int64_t>(view.getOffset()) * element;
    access.begin += offset;
    access.end += offset + view.getLargestShift() * element;
  }
  access.root = buffer;
  return access;
}

SmallVector<BufferAccess> mlir::ds::accessesOf(Operation *command) {
  SmallVector<BufferAccess> result;
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto effecting = dyn_cast<MemoryEffectOpInterface>(command))
    effecting.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects) {
    if (!effect.getValue())
      continue;
    BufferAccess access = windowOf(effect.getValue());
    auto known = llvm::find_if(result, [&](const BufferAccess &other) {
      return other.root == access.root && other.begin == access.begin && other.end == access.end;
    });
    BufferAccess &entry = known == result.end() ? result.emplace_back(access) : *known;
    entry.isRead |= isa<MemoryEffects::Read>(effect.getEffect());
    entry.isWrite |= isa<MemoryEffects::Write>(effect.getEffect());
  }
  return result;
}

bool mlir::ds::conflict(ArrayRef<BufferAccess> first, ArrayRef<BufferAccess> second) {
  return llvm::any_of(first, [&](const BufferAccess &a) {
    return llvm::any_of(second, [&](const BufferAccess &b) { return a.conflictsWith(b); });
  });
}

void mlir::ds::placeBuffers(func::FuncOp func) {
  // A place is what stood at a number at first, or what came to stand right before that, the earlier the less
  // its second number. The block's own numbers would be counted anew after each move.
  DenseMap<Operation *, std::pair<unsigned, unsigned>> places;
  for (auto [index, op] : llvm::enumerate(func.getBody().front()))
    places[&op] = {index, UINT_MAX};
  // Views before the allocations that they name: an allocation must come before its views.
  SmallVector<Operation *> buffers = llvm::to_vector_of<Operation *>(func.getOps<ViewOp>());
  llvm::append_range(buffers, llvm::to_vector_of<Operation *>(func.getOps<AllocOp>()));
  for (auto [moved, buffer] : llvm::enumerate(buffers)) {
    Operation *first = nullptr;
    for (Operation *user : buffer->getUsers())
      if (!first || places.at(user) < places.at(first))
        first = user;
    if (!first)
      continue;
    buffer->moveBefore(first);
    places[buffer] = {places.at(first).first, moved};
  }
}
