//===- SegmentMemory.cpp - What a segment's values take -----------------------------===//
#include "SegmentMemory.h"

#include "SegmentPlaces.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

SegmentMemory::SegmentMemory(std::shared_ptr<const SegmentCommands> of, const RecomputeRules &rules,
                             const SymbolTable &symbols)
    : memories(of->memories), described(std::move(of)), rules(rules) {
  func::FuncOp func = described->func;
  Block &block = func.getBody().front();
  if (rules.recomputesCalls())
    for (Operation &op : block.without_terminator())
      noteCalls(op);
  for (Operation &op : llvm::reverse(block.without_terminator()))
    followReads(op);
  SegmentPlaces(func, described->regions, symbols, *this).find();
}

/// Notes what `op` reads if it is a call that may be recomputed: that is to be in memory then.
void SegmentMemory::noteCalls(Operation &op) {
  const OpForm form = described->knownForm(op);
  if ((form == OpForm::Call || form == OpForm::Join) && rules.mayRecompute(&op))
    for (Value operand : op.getOperands())
      if (std::optional<uint32_t> index = find(operand))
        memories[*index].isReadByCall = true;
}

/// Extends `memory` to where `op`, which backward may run again, reads it then.
void SegmentMemory::followRepeats(Operation &op, ValueMemory &memory) {
  for (Value result : op.getResults())
    if (std::optional<uint32_t> made = find(result)) {
      const ValueMemory &by = memories[*made];
      memory.firstRead = std::min(memory.firstRead, by.firstRead);
      uint32_t last = isCheap(&op) ? by.lastRead : by.firstRead;
      if (by.firstRead <= by.lastRead)
        memory.lastRead = std::max(memory.lastRead, last);
    }
}

bool mlir::ds::isBroughtAgain(Operation *maker) {
  return (isa<CollectiveOpInterface>(maker) && !isExchange(maker) && !isa<RecvOp>(maker)) ||
         isa<LoadOp>(maker);
}

/// Extends the memory of `operand` to where `op` reads it.
void SegmentMemory::followRead(Operation &op, Value operand) {
  std::optional<uint32_t> index = find(operand);
  if (!index)
    return;
  ValueMemory &memory = memories[*index];
  const bool isOther = memory.isForward && !isForward(&op);
  Operation *maker = memory.value.getDefiningOp();
  // Parameters that were gathered or loaded for forward are brought again for what backward recomputes.
  const bool comesAgain = isa<LoadOp>(maker) || (rules.recomputesCalls() && isBroughtAgain(maker));
  if (isForward(&op) && rules.mayRecompute(&op) && !comesAgain)
    followRepeats(op, memory);
  uint32_t &last = isOther ? memory.lastRead : memory.end;
  last = std::max(last, momentOf(&op));
}

void SegmentMemory::followReads(Operation &op) {
  if (described->knownForm(op) == OpForm::View)
    return;
  for (Value operand : op.getOperands())
    followRead(op, operand);
}

uint32_t SegmentMemory::wholeOf(uint32_t index) const {
  while (memories[index].joined >= 0)
    index = uint32_t(memories[index].joined);
  return index;
}

std::optional<analysis::MemoryHold> SegmentMemory::holdUntil(uint32_t index, uint32_t end) const {
  const ValueMemory &memory = memories[index];
  if (memory.joined >= 0 || memory.isInState)
    return std::nullopt;
  const uint32_t begin = memory.begin + memory.isInPlace;
  return analysis::MemoryHold{uint32_t(memory.space), memory.bytes, begin, std::max(begin, end + 1)};
}

analysis::StepMemory SegmentMemory::getMemory() const {
  std::vector<uint32_t> ends;
  for (const ValueMemory &memory : memories)
    ends.push_back(std::max(memory.end, memory.isRead ? memory.lastRead : 0));
  for (size_t part = 0; part < memories.size(); ++part) // a join lasts as long as any of its parts
    for (int32_t in = memories[part].joined; in >= 0; in = memories[in].joined)
      ends[in] = std::max(ends[in], ends[part]);
  const uint32_t moments = commands().size();
  analysis::StepMemory all(getMaxEnumValForSpace() + 1, moments);
  for (uint32_t index = 0; index < memories.size(); ++index)
    if (memories[index].isStored || memories[index].isRead)
      if (const std::optional<analysis::MemoryHold> hold = holdUntil(index, ends[index]))
        all.hold({hold->space, hold->bytes, std::min(hold->begin, moments), std::min(hold->end, moments)});
  return all;
}
