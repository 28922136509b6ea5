//===- CudaRows.cpp - CUDA kernels that reduce rows ----------------------------===//
//
// A group of threads takes a row. Held in registers, a row is one piece of straight code: a value that
// several reductions need is computed once. A walked row is read again by every reduction and by the outputs.
// Threads without a row of their own (the last block's) compute a row that exists and store nothing, so that
// all threads meet in exchanges.
//
//===---------------------------------------------------------------------------===//

#include "CudaBuilder.h"
#include "ReductionMath.h"

namespace mlir::ds::codegen {
namespace {

class RowEmitter {
public:
  explicit RowEmitter(CudaBuilder &c) : c(c), s(c.s), b(c.b), nest(c.nest), m(c.mapping) {}

  void emit();

private:
  void placeCopies();
  SmallVector<Value> walk(ArrayRef<Node *> level);
  void reduceLevel(unsigned level);
  void storeOutputs();
  void setVector(Value vector);
  bool isHeld() const { return m.copies > 0; }

  CudaBuilder &c;
  ScopedBuilder &s;
  OpBuilder &b;
  const LoopNest &nest;
  const CudaMapping &m;
  Value place;              ///< of the thread in its row
  Value hasRow;             ///< null: always
  SmallVector<Value> valid; ///< of each copy; null: always
};

/// Where the vectors lie that the thread holds. One behind the row's end is taken from its start, and its
/// value is not used.
void RowEmitter::placeCopies() {
  valid.clear();
  for (int64_t copy = 0; copy < m.copies; ++copy) {
    Value vector = c.add(place, s.constant(copy * m.rowThreads));
    Value exists = (copy + 1) * m.rowThreads > m.rowVectors ? c.isBelow(vector, m.rowVectors) : Value();
    if (exists)
      vector = b.create<arith::SelectOp>(s.loc, exists, vector, s.constant(0));
    Value start = c.mul(vector, m.lanes);
    if (copy == 0)
      c.nodes.position.setDim(*nest.vectorDim, start);
    c.nodes.position.setCopyStart(copy, start);
    valid.push_back(exists);
  }
}

/// Sets the dimensions of a row from the number of a vector in it.
void RowEmitter::setVector(Value vector) {
  int64_t inner = nest.vectorSize() / m.lanes;
  if (inner < m.rowVectors) {
    c.setDims(c.quotient(vector, inner, m.rowVectors), true);
    vector = c.remainder(vector, inner, m.rowVectors);
  }
  c.nodes.position.setDim(*nest.vectorDim, c.mul(vector, m.lanes));
}

/// The thread's totals of a walked row.
SmallVector<Value> RowEmitter::walk(ArrayRef<Node *> level) {
  auto loop = s.beginLoop(place, s.constant(m.rowVectors), m.rowThreads, c.neutralTotals(level));
  setVector(loop.iv);
  SmallVector<Value> totals = loop.carried;
  c.accumulate(level, 0, Value(), totals);
  return s.endLoop(loop, totals);
}

void RowEmitter::reduceLevel(unsigned level) {
  SmallVector<Node *> reductions = nest.reductionsOf(level);
  SmallVector<Value> totals;
  if (isHeld()) {
    totals = c.neutralTotals(reductions);
    for (int64_t copy = 0; copy < m.copies; ++copy)
      c.accumulate(reductions, copy, valid[copy], totals);
  } else {
    totals = walk(reductions);
  }
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
    total = acrossLanes(b, s.loc, reduction, total);
  totals = c.acrossThreads(reductions, std::move(totals), m.rowThreads);
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
    c.nodes.define(reduction, 0, c.nodes.fromCompute(total, reduction->type));
}

void RowEmitter::storeOutputs() {
  auto guarded = [&](Value condition, auto write) {
    Block *exit = condition ? s.beginIf(condition) : nullptr;
    write();
    if (exit)
      s.endIf(exit);
  };
  if (nest.hasFullOutputs() && isHeld()) {
    for (int64_t copy = 0; copy < m.copies; ++copy)
      guarded(c.both(hasRow, valid[copy]), [&] { c.nodes.storeFull(nest, copy); });
  } else if (nest.hasFullOutputs()) {
    guarded(hasRow, [&] {
      auto loop = s.beginLoop(place, s.constant(m.rowVectors), m.rowThreads);
      setVector(loop.iv);
      c.nodes.storeFull(nest, 0);
      s.endLoop(loop);
    });
  }
  // Values of the row may lie where one of them is about to be written: all threads have read it now. The
  // barrier also keeps one row's exchanges from the next one's.
  for (const NestOutput &output : nest.outputs)
    if (!output.full)
      c.nodes.emit(output.value, 0);
  m.rowThreads > 32 ? c.thread.blockBarrier(b, s.loc) : c.thread.warpBarrier(b, s.loc);
  guarded(c.both(hasRow, c.isBelow(place, 1)), [&] {
    for (const NestOutput &output : nest.outputs)
      if (!output.full)
        c.nodes.store(output, 0);
  });
}

void RowEmitter::emit() {
  int64_t rows = m.extent, perBlock = m.rowsPerBlock();
  place = c.remainder(c.own.threadIndex, m.rowThreads, 1024);
  Value group = c.quotient(c.own.threadIndex, m.rowThreads, 1024);
  // The loop is over the first row of a block, so that all its threads run it equally often.
  auto loop =
      s.beginLoop(c.mul(c.own.blockIndex, perBlock), s.constant(rows), c.mul(c.own.blockCount, perBlock));
  Value row = c.add(loop.iv, group);
  if (rows % perBlock != 0) {
    hasRow = c.isBelow(row, rows);
    row = b.create<arith::SelectOp>(s.loc, hasRow, row, s.constant(rows - 1));
  }
  c.setDims(row, false);
  if (isHeld())
    placeCopies();
  c.nodes.position.setReductionScope(s.depth());
  for (unsigned level = 1; level <= nest.lastLevel(); ++level)
    reduceLevel(level);
  storeOutputs();
  s.endLoop(loop);
}

} // namespace

void emitCudaRows(CudaBuilder &c) { RowEmitter(c).emit(); }

} // namespace mlir::ds::codegen
