//===- KernelRows.cpp - CPU kernels that reduce rows ---------------------------===//
//
// Each level of reductions is a stage, one loop over the row for all of them, with accumulators whose number
// and order of combination are fixed by shapes, so that the sum does not depend on who computes it. Outputs
// of every element are a last stage.
//
//===---------------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "ReductionMath.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::ds::codegen {

/// Rows shorter than this many vectors get one accumulator; longer ones as many, to hide the latency of
/// additions.
static constexpr int64_t kAccumulators = 4;

/// Stack bytes that one cached row may take.
static constexpr int64_t kCacheBytes = 32 << 10;

namespace {

class RowEmitter {
public:
  explicit RowEmitter(KernelBuilder &k)
      : k(k), s(k.s), b(k.b), nodes(k.nodes), nest(k.nest), lanes(k.lanes) {}

  void emit();

private:
  SmallVector<Value> rowStage(ArrayRef<Node *> level);
  SmallVector<Value> scalarStage(ArrayRef<Node *> level);
  SmallVector<Value> rowLoop(ArrayRef<Node *> level, int64_t from, int64_t to, int64_t copies,
                             SmallVector<Value> totals);
  template <class Write>
  SmallVector<Value> overOuterRow(SmallVector<Value> carried, Write write);

  KernelBuilder &k;
  ScopedBuilder &s;
  OpBuilder &b;
  NodeEmitter &nodes;
  const LoopNest &nest;
  const int64_t lanes;
};

} // namespace

/// Runs `write` for every position of the reduced dimensions outside the vector dimension, with values
/// carried from one to the next; returns the last.
template <class Write>
SmallVector<Value> RowEmitter::overOuterRow(SmallVector<Value> carried, Write write) {
  int64_t count = nest.countOuter(true);
  if (count == 1) {
    nodes.rowBase = nullptr;
    return write(std::move(carried));
  }
  auto loop = s.beginLoop(s.constant(0), s.constant(count), 1, carried);
  nodes.rowBase = b.create<arith::MulIOp>(s.loc, loop.iv, s.constant(nest.vectorSize()));
  k.setDims(loop.iv, true);
  return s.endLoop(loop, write(loop.carried));
}

/// Adds vectors [from, to) of the row, `copies` at a time, to the totals.
SmallVector<Value> RowEmitter::rowLoop(ArrayRef<Node *> level, int64_t from, int64_t to, int64_t copies,
                                       SmallVector<Value> totals) {
  if (from == to)
    return totals;
  auto loop = s.beginLoop(s.constant(from), s.constant(to), lanes * copies, totals);
  nodes.position.setDim(*nest.vectorDim, loop.iv);
  totals = loop.carried;
  k.accumulate(level, copies, totals);
  return s.endLoop(loop, totals);
}

/// Totals of all reductions of a level, one vector each.
SmallVector<Value> RowEmitter::rowStage(ArrayRef<Node *> level) {
  int64_t size = nest.vectorSize(), copies = size >= kAccumulators * lanes ? kAccumulators : 1;
  SmallVector<Value> totals = overOuterRow(k.neutralTotals(level, copies), [&](SmallVector<Value> totals) {
    int64_t unrolled = size / (lanes * copies) * lanes * copies, whole = size / lanes * lanes;
    totals = rowLoop(level, 0, unrolled, copies, std::move(totals));
    // What is left goes to the first accumulator of each reduction.
    SmallVector<Value> firsts;
    for (size_t i = 0; i < level.size(); ++i)
      firsts.push_back(totals[i * copies]);
    firsts = rowLoop(level, unrolled, whole, 1, std::move(firsts));
    if (whole != size) {
      s.beginBlock();
      Value start = s.constant(whole);
      nodes.position.setDim(*nest.vectorDim, start);
      nodes.position.setMask(0, nodes.lanes.below(start, 0, s.constant(size)));
      k.accumulate(level, 1, firsts);
      nodes.position.setMask(0, nullptr);
      s.endBlock();
    }
    for (size_t i = 0; i < level.size(); ++i)
      totals[i * copies] = firsts[i];
    return totals;
  });
  SmallVector<Value> result;
  for (auto [index, reduction] : llvm::enumerate(level)) {
    SmallVector<Value> parts(ArrayRef<Value>(totals).slice(index * copies, copies));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = combine(b, s.loc, reduction, parts[2 * i], parts[2 * i + 1]);
    result.push_back(parts[0]);
  }
  return result;
}

void RowEmitter::emit() {
  for (unsigned level = 1; level <= nest.lastLevel(); ++level) {
    nodes.stage = level;
    SmallVector<Node *> reductions = nest.reductionsOf(level);
    SmallVector<Value> totals = nest.vectorDim ? rowStage(reductions) : scalarStage(reductions);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals)) {
      Value scalar = nest.vectorDim ? acrossLanes(b, s.loc, reduction, total) : total;
      nodes.define(reduction, 0, nodes.fromCompute(scalar, reduction->type));
    }
  }
  nodes.stage = nest.lastLevel() + 1;
  if (nest.vectorDim && nest.hasFullOutputs())
    overOuterRow({}, [&](SmallVector<Value> none) {
      k.overRange(s.constant(0), s.constant(nest.vectorSize()), [&] { nodes.storeFull(nest, 0); });
      return none;
    });
  for (const NestOutput &output : nest.outputs)
    if (!output.full || !nest.vectorDim)
      nodes.store(output, 0);
}

/// Reductions over a single element.
SmallVector<Value> RowEmitter::scalarStage(ArrayRef<Node *> level) {
  SmallVector<Value> totals = k.neutralTotals(level, 1);
  k.accumulate(level, 1, totals);
  return totals;
}

void emitKernelRow(KernelBuilder &k) { RowEmitter(k).emit(); }

//===----------------------------------------------------------------------===//
// Values that several stages need
//===----------------------------------------------------------------------===//

/// Adds what `node` needs within one stage; reductions are boundaries.
static void collectNeeded(const Node *node, llvm::SmallPtrSetImpl<const Node *> &needed) {
  if (node->kind == Node::Kind::Reduce || !needed.insert(node).second)
    return;
  for (const Node *operand : node->operands)
    collectNeeded(operand, needed);
}

void chooseRowCaches(KernelBuilder &k) {
  const LoopNest &nest = k.nest;
  int64_t rowSize = llvm::alignTo(nest.countOuter(true) * nest.vectorSize(), k.lanes);
  llvm::DenseMap<const Node *, unsigned> firstStage;
  for (unsigned stage = 1; stage <= nest.lastLevel() + 1; ++stage) {
    llvm::SmallPtrSet<const Node *, 32> needed;
    for (const Node *reduction : nest.reductionsOf(stage))
      collectNeeded(reduction->operands[0], needed);
    if (stage == nest.lastLevel() + 1)
      for (const NestOutput &output : nest.outputs)
        if (output.full)
          collectNeeded(output.value, needed);
    for (const Node &candidate : nest.graph->allNodes()) {
      const Node *node = &candidate;
      if (!isHeavy(candidate) || !needed.contains(node) || !k.nodes.isVector(node))
        continue;
      auto [it, isFirst] = firstStage.insert({node, stage});
      int64_t bytes = rowSize * memoryType(node->type).getIntOrFloatBitWidth() / 8;
      if (isFirst || k.nodes.rowCaches.contains(node) || bytes > kCacheBytes)
        continue;
      Value count = k.s.constant(rowSize);
      Value memory = k.b.create<LLVM::AllocaOp>(k.s.loc, LLVM::LLVMPointerType::get(k.b.getContext()),
                                                memoryType(node->type), count, /*alignment=*/64);
      k.nodes.rowCaches[node] = {memory, it->second};
    }
  }
}

} // namespace mlir::ds::codegen
