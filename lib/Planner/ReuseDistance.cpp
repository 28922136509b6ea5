//===- ReuseDistance.cpp - How long ago a command's memory was touched -------------===//
#include "ReuseDistance.h"

#include "ds/Passes/BufferAccess.h"

using namespace mlir;
using namespace mlir::ds;

static constexpr int64_t kBlock = int64_t(64) << 10;

/// The mean over the blocks of [begin, end) of what was touched since they were; touches them.
double ReuseDistance::touchBlocks(const void *root, int64_t begin, int64_t end) {
  return blocks[root].touch(begin / kBlock, (std::max(end, begin + 1) - 1) / kBlock + 1, touched);
}

SmallVector<double> ReuseDistance::touch(Operation *command) {
  for (const BufferAccess &access : accessesOf(command))
    touched += double(access.end - access.begin);
  SmallVector<double> distances;
  for (Value operand : command->getOperands()) {
    if (!isa<BufferType>(operand.getType())) {
      distances.push_back(0);
      continue;
    }
    BufferAccess window = windowOf(operand);
    auto alloc = window.root.getDefiningOp<AllocOp>();
    int64_t base = alloc && alloc.getOffset() ? int64_t(*alloc.getOffset()) : 0;
    const void *root = base > 0 ? nullptr : window.root.getAsOpaquePointer();
    distances.push_back(touchBlocks(root, base + window.begin, base + window.end));
  }
  return distances;
}
