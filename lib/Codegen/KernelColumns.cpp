//===- KernelColumns.cpp - CPU kernels that reduce columns ---------------------===//
//
// Several columns side by side are a vector, and several vectors go down together. What is added up in which
// order is fixed by shapes, so that the sum does not depend on who computes it.
//
//===---------------------------------------------------------------------------===//

#include "KernelBuilder.h"
#include "ReductionMath.h"

namespace mlir::ds::codegen {

/// Elements that a column block adds up before it adds to the total: a long column loses fewer bits that way.
static constexpr int64_t kColumnBlock = 32;

/// Totals of all reductions of a level, `copies` vectors each.
static SmallVector<Value> columnStage(KernelBuilder &k, ArrayRef<Node *> level, int64_t copies) {
  ScopedBuilder &s = k.s;
  OpBuilder &b = k.b;
  int64_t count = k.nest.countOuter(true);
  auto overRows = [&](Value from, Value to) {
    auto loop = s.beginLoop(from, to, 1, k.neutralTotals(level, copies));
    k.setDims(loop.iv, true);
    SmallVector<Value> totals = loop.carried;
    k.accumulate(level, copies, totals);
    return s.endLoop(loop, totals);
  };
  if (count <= 2 * kColumnBlock)
    return overRows(s.constant(0), s.constant(count));
  auto blocks = s.beginLoop(s.constant(0), s.constant(count), kColumnBlock, k.neutralTotals(level, copies));
  Value end = b.create<arith::AddIOp>(s.loc, blocks.iv, s.constant(kColumnBlock));
  SmallVector<Value> parts = overRows(blocks.iv, b.create<arith::MinSIOp>(s.loc, end, s.constant(count)));
  SmallVector<Value> totals = blocks.carried;
  for (auto [i, reduction] : llvm::enumerate(level))
    for (int64_t copy = 0; copy < copies; ++copy) {
      Value &total = totals[i * copies + copy];
      total = combine(b, s.loc, reduction, total, parts[i * copies + copy]);
    }
  return s.endLoop(blocks, totals);
}

void emitKernelColumns(KernelBuilder &k, Value chunk) {
  ScopedBuilder &s = k.s;
  NodeEmitter &nodes = k.nodes;
  const LoopNest &nest = k.nest;
  int64_t copies = k.units.chunk / k.lanes, size = nest.vectorSize();
  Value start = k.b.create<arith::MulIOp>(s.loc, chunk, s.constant(k.units.chunk));
  nodes.position.setDim(*nest.vectorDim, start);
  for (int64_t copy = 0; copy < copies; ++copy)
    nodes.position.setMask(copy,
                           size % k.units.chunk ? nodes.lanes.below(start, copy, s.constant(size)) : Value());
  for (unsigned level = 1; level <= nest.lastLevel(); ++level) {
    SmallVector<Node *> reductions = nest.reductionsOf(level);
    SmallVector<Value> totals = columnStage(k, reductions, copies);
    for (auto [i, reduction] : llvm::enumerate(reductions))
      for (int64_t copy = 0; copy < copies; ++copy)
        nodes.define(reduction, copy, nodes.fromCompute(totals[i * copies + copy], reduction->type));
  }
  if (nest.hasFullOutputs()) {
    auto loop = s.beginLoop(s.constant(0), s.constant(nest.countOuter(true)), 1);
    k.setDims(loop.iv, true);
    for (int64_t copy = 0; copy < copies; ++copy)
      nodes.storeFull(nest, copy);
    s.endLoop(loop);
  }
  for (const NestOutput &output : nest.outputs)
    for (int64_t copy = 0; !output.full && copy < copies; ++copy)
      nodes.store(output, copy);
}

} // namespace mlir::ds::codegen
