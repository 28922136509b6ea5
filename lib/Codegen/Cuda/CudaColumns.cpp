//===- CudaColumns.cpp - CUDA kernels that reduce columns ----------------------===//
//
// A block takes a tile of columns. Its threads run down the columns side by side, each every rowThreads-th
// element, several of them under way, and their totals meet in shared memory, halves on halves. Threads
// beside the last column compute one that exists and store nothing.
//
//===---------------------------------------------------------------------------===//

#include "CudaBuilder.h"
#include "ReductionMath.h"

namespace mlir::ds::codegen {
namespace {

class ColumnEmitter {
public:
  explicit ColumnEmitter(CudaBuilder &c) : c(c), s(c.s), b(c.b), nest(c.nest), m(c.mapping) {}

  void emit();

private:
  void setTile(Value tile);
  SmallVector<Value> walk(ArrayRef<Node *> level);
  SmallVector<Value> walkRows(ArrayRef<Node *> level, Value from, int64_t to, int64_t atOnce,
                              ValueRange totals);
  Value meet(const Node *reduction, Value total);
  void storeOutputs();

  CudaBuilder &c;
  ScopedBuilder &s;
  OpBuilder &b;
  const LoopNest &nest;
  const CudaMapping &m;
  Value across, down; ///< place of the thread in its tile
  Value hasColumn;    ///< null: always
};

void ColumnEmitter::setTile(Value tile) {
  int64_t perRow = llvm::divideCeil(m.rowVectors, m.columnThreads);
  c.setDims(c.quotient(tile, perRow, m.extent), false);
  Value vector = c.add(c.mul(c.remainder(tile, perRow, m.extent), m.columnThreads), across);
  if (m.rowVectors % m.columnThreads != 0) {
    hasColumn = c.isBelow(vector, m.rowVectors);
    vector = b.create<arith::SelectOp>(s.loc, hasColumn, vector, s.constant(m.rowVectors - 1));
  }
  c.nodes.position.setDim(*nest.vectorDim, c.mul(vector, m.lanes));
}

/// The thread's totals down its columns. A thread waits for several of its rows together, while there are as
/// many for all threads, and adds them in their order.
SmallVector<Value> ColumnEmitter::walk(ArrayRef<Node *> level) {
  int64_t count = nest.countOuter(true), whole = count - count % (m.rowThreads * m.rowsAtOnce);
  SmallVector<Value> totals = c.neutralTotals(level);
  if (whole > 0)
    totals = walkRows(level, down, whole, m.rowsAtOnce, totals);
  if (whole < count)
    totals = walkRows(level, c.add(down, s.constant(whole)), count, 1, totals);
  return totals;
}

/// Adds the thread's rows from `from` on and below `to` to `totals`.
SmallVector<Value> ColumnEmitter::walkRows(ArrayRef<Node *> level, Value from, int64_t to, int64_t atOnce,
                                           ValueRange totals) {
  auto loop = s.beginLoop(from, s.constant(to), m.rowThreads * atOnce, totals);
  SmallVector<Value> sums = loop.carried;
  for (int64_t row = 0; row < atOnce; ++row) {
    s.beginBlock(); // what is computed of one row is not the next one's
    c.setDims(row == 0 ? loop.iv : c.add(loop.iv, s.constant(row * m.rowThreads)), true);
    c.accumulate(level, 0, Value(), sums);
    s.endBlock();
  }
  return s.endLoop(loop, sums);
}

/// Combines the totals of all threads of a column.
Value ColumnEmitter::meet(const Node *reduction, Value total) {
  if (m.rowThreads == 1)
    return total;
  Type element = cast<VectorType>(total.getType()).getElementType();
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), memory = memoryType(element);
  int64_t bytes = m.lanes * memory.getIntOrFloatBitWidth() / 8;
  Value base = c.thread.sharedMemory(b, s.loc, m.blockThreads * m.lanes * 8);
  auto slot = [&](Value row) -> Value {
    Value offset = c.mul(c.add(c.mul(row, m.columnThreads), across), bytes);
    return b.create<LLVM::GEPOp>(s.loc, pointer, b.getI8Type(), base, offset);
  };
  unsigned alignment = memory.getIntOrFloatBitWidth() / 8;
  auto stored = [&](Value value) -> Value {
    Type type = cast<VectorType>(value.getType()).clone(memory);
    return element == memory ? value : b.create<arith::ExtUIOp>(s.loc, type, value).getResult();
  };
  auto load = [&](Value row) -> Value {
    Type type = cast<VectorType>(total.getType()).clone(memory);
    Value value = b.create<LLVM::LoadOp>(s.loc, type, slot(row), alignment);
    return element == memory ? value : b.create<arith::TruncIOp>(s.loc, total.getType(), value).getResult();
  };
  b.create<LLVM::StoreOp>(s.loc, stored(total), slot(down), alignment);
  for (int64_t half = m.rowThreads / 2; half > 0; half /= 2) {
    c.thread.blockBarrier(b, s.loc);
    Block *exit = s.beginIf(c.isBelow(down, half));
    Value sum = combine(b, s.loc, reduction, load(down), load(c.add(down, s.constant(half))));
    b.create<LLVM::StoreOp>(s.loc, stored(sum), slot(down), alignment);
    s.endIf(exit);
  }
  c.thread.blockBarrier(b, s.loc);
  Value result = load(s.constant(0));
  c.thread.blockBarrier(b, s.loc); // the memory is used again
  return result;
}

void ColumnEmitter::storeOutputs() {
  if (nest.hasFullOutputs()) {
    Block *exit = hasColumn ? s.beginIf(hasColumn) : nullptr;
    auto loop = s.beginLoop(down, s.constant(nest.countOuter(true)), m.rowThreads);
    c.setDims(loop.iv, true);
    c.nodes.storeFull(nest, 0);
    s.endLoop(loop);
    if (exit)
      s.endIf(exit);
  }
  // All threads have read what belongs to the column before one of them writes there.
  for (const NestOutput &output : nest.outputs)
    if (!output.full)
      c.nodes.emit(output.value, 0);
  c.thread.blockBarrier(b, s.loc);
  Block *exit = s.beginIf(c.both(hasColumn, c.isBelow(down, 1)));
  for (const NestOutput &output : nest.outputs)
    if (!output.full)
      c.nodes.store(output, 0);
  s.endIf(exit);
}

void ColumnEmitter::emit() {
  across = c.remainder(c.own.threadIndex, m.columnThreads, 1024);
  down = c.quotient(c.own.threadIndex, m.columnThreads, 1024);
  auto loop = s.beginLoop(c.own.blockIndex, s.constant(m.extent), c.own.blockCount);
  setTile(loop.iv);
  c.nodes.position.setReductionScope(s.depth());
  for (unsigned level = 1; level <= nest.lastLevel(); ++level) {
    SmallVector<Node *> reductions = nest.reductionsOf(level);
    SmallVector<Value> totals = walk(reductions);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
      c.nodes.define(reduction, 0, c.nodes.fromCompute(meet(reduction, total), reduction->type));
  }
  storeOutputs();
  s.endLoop(loop);
}

} // namespace

void emitCudaColumns(CudaBuilder &c) { ColumnEmitter(c).emit(); }

} // namespace mlir::ds::codegen
