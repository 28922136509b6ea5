//===- LiveCount.cpp - What a function holds, counted before and behind its buffers -===//
#include "LiveCount.h"

#include "Resident/SegmentMemory.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

int64_t mlir::ds::countValues(func::FuncOp func, const SymbolTable &symbols) {
  const OpenRegions none;
  const RecomputeRules rules = RecomputeRules::nothing();
  const std::vector<int64_t> live = SegmentMemory(func, none, rules, symbols).getLiveBytes();
  return live.empty() ? 0 : *llvm::max_element(live);
}

namespace {
/// The commands between which something is touched.
struct Span {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
};
} // namespace

/// Widens `span` by the commands that touch `buffer` or a view of it.
static void widen(Value buffer, const DenseMap<Operation *, int64_t> &position, Span &span) {
  for (Operation *user : buffer.getUsers()) {
    if (auto view = dyn_cast<ViewOp>(user))
      widen(view.getResult(), position, span);
    if (auto command = position.find(user); command != position.end()) {
      span.first = std::min(span.first, command->second);
      span.last = std::max(span.last, command->second);
    }
  }
}

int64_t mlir::ds::countAllocations(func::FuncOp func) {
  Block &block = func.getBody().front();
  DenseMap<Operation *, int64_t> position;
  for (auto command : block.getOps<ScheduledOpInterface>())
    position.try_emplace(command, position.size());
  std::vector<int64_t> live(position.size() + 1, 0);
  for (AllocOp alloc : block.getOps<AllocOp>()) {
    const BufferType type = alloc.getBuffer().getType();
    Span span;
    widen(alloc.getBuffer(), position, span);
    if (type.getSpace() != Space::Device || span.last < 0)
      continue;
    live[span.first] += type.getSizeInBytes();
    live[span.last + 1] -= type.getSizeInBytes();
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return *llvm::max_element(live);
}
