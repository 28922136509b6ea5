//===- CudaColumns.cpp - CUDA kernels that reduce columns ----------------------===//
//
// A block takes a tile of columns. Its threads run down the columns side by side, each every rowThreads-th
// element, several of them under way, and their totals meet in shared memory, halves on halves. Threads
// beside the last column compute one that exists and store nothing.
//
// Columns that are added up in parts, and the parts afterwards, may be one launch. Blocks take a part's strip
// of columns each, store its sums and count the strip in the module's memory; the block that counts the last
// part reads all of them back and adds them up. No block waits for another, so any grid ends, and which block
// is last changes nothing: the order of parts is fixed.
//
//     threads of block A     store sums of parts   ---barrier---> thread 0: atom.acq_rel.gpu.inc (A)
//     thread 0 of block B                                         atom.acq_rel.gpu.inc (B) finds the last
//     threads of block B                           <--barrier---  load sums of parts
//
// It is free of races by PTX's memory model. In A, each store comes before the barrier in program order, the
// barrier synchronizes with that of thread 0, and (A) follows in its program order: base causality order,
// which is transitive. (A) is a release pattern and (B) an acquire pattern on one counter; B's count is what
// it is because (B) reads, through a chain of atomic operations alone, what (A) wrote, so that (A) precedes
// (B) in observation order. Both are strong, of scope gpu and of 32 bits at one place, hence morally strong:
// (A) synchronizes with (B). From (B) the barrier leads to the loads of B's other threads as before. So every
// store of parts happens before every load of them, and no two blocks store the same. The loads are plain
// ld.global: nothing says that an operand is only read, which .nc would need.
//
// A counter runs from 0 to the number of parts less one and wraps to 0 by the same instruction. It is 0 when
// the module is loaded and after every launch that ends; one that does not end takes the context with it, and
// a restart loads the module anew. Launches of one kernel must not overlap: they are all on the compute
// stream (ds-verify-scheduled), where a captured graph has them one after another too.
//
//===---------------------------------------------------------------------------===//

#include "CudaBuilder.h"
#include "ReductionMath.h"

namespace mlir::ds::codegen {
namespace {

class ColumnEmitter {
public:
  /// The block has `sharedBytes` of shared memory.
  ColumnEmitter(CudaBuilder &c, int64_t sharedBytes)
      : c(c), s(c.s), b(c.b), nest(c.nest), m(c.mapping), sharedBytes(sharedBytes) {}

  /// Writes the kernel. Where there are `sums`, they are those of the parts that this one adds up.
  void emit(ColumnEmitter *sums = nullptr);

private:
  void placeThread();
  void emitTile(Value tile);
  void addParts(Value tile, ColumnEmitter &sums);
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
  const int64_t sharedBytes;
  Value across, down; ///< place of the thread in its tile
  Value firstRow;     ///< of the thread; behind the last one where the column has threads enough without it
  Value hasColumn;    ///< null: always
};

/// Finds the thread's place, which holds in the innermost scope.
void ColumnEmitter::placeThread() {
  across = c.remainder(c.own.threadIndex, m.columnThreads, 1024);
  down = c.quotient(c.own.threadIndex, m.columnThreads, 1024);
  firstRow = down;
  if (m.rowThreads * m.columnThreads < m.blockThreads)
    firstRow = b.create<arith::SelectOp>(s.loc, c.isBelow(down, m.rowThreads), down,
                                         s.constant(nest.countOuter(true)));
}

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
    totals = walkRows(level, firstRow, whole, m.rowsAtOnce, totals);
  if (whole < count)
    totals = walkRows(level, c.add(firstRow, s.constant(whole)), count, 1, totals);
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
  Value base = c.thread.sharedMemory(b, s.loc, sharedBytes);
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
    auto loop = s.beginLoop(firstRow, s.constant(nest.countOuter(true)), m.rowThreads);
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

void ColumnEmitter::emitTile(Value tile) {
  setTile(tile);
  c.nodes.position.setReductionScope(s.depth());
  for (unsigned level = 1; level <= nest.lastLevel(); ++level) {
    SmallVector<Node *> reductions = nest.reductionsOf(level);
    SmallVector<Value> totals = walk(reductions);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
      c.nodes.define(reduction, 0, c.nodes.fromCompute(meet(reduction, total), reduction->type));
  }
  storeOutputs();
}

/// Counts the tile, whose sums are stored, among those of its strip of columns, and adds up the strip's parts
/// where it is the last of them. Every thread comes here, and all of a block take the same way.
void ColumnEmitter::addParts(Value tile, ColumnEmitter &sums) {
  const int64_t strips = sums.m.extent, last = m.extent / strips - 1;
  Value strip = c.remainder(tile, strips, m.extent);
  Value found = c.thread.sharedMemory(b, s.loc, sharedBytes);
  c.thread.blockBarrier(b, s.loc);
  Block *exit = s.beginIf(c.isBelow(c.own.threadIndex, 1));
  b.create<LLVM::StoreOp>(s.loc, c.thread.countUp(b, s.loc, strip, strips, last), found, 4);
  s.endIf(exit);
  c.thread.blockBarrier(b, s.loc);
  Value count = b.create<LLVM::LoadOp>(s.loc, b.getI32Type(), found, 4);
  c.thread.blockBarrier(b, s.loc); // the memory is used again
  Value all = b.create<arith::ConstantOp>(s.loc, b.getI32IntegerAttr(int32_t(last)));
  exit = s.beginIf(b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::eq, count, all));
  sums.c.own.threadIndex = c.thread.threadIndexAnew(b, s.loc);
  sums.placeThread();
  sums.emitTile(strip);
  s.endIf(exit);
}

void ColumnEmitter::emit(ColumnEmitter *sums) {
  placeThread();
  auto loop = s.beginLoop(c.own.blockIndex, s.constant(m.extent), c.own.blockCount);
  emitTile(loop.iv);
  if (sums)
    addParts(loop.iv, *sums);
  s.endLoop(loop);
}

/// Shared memory for a vector of each thread.
int64_t sharedBytesOf(const CudaMapping &mapping) { return mapping.blockThreads * mapping.lanes * 8; }

} // namespace

void emitCudaColumns(CudaBuilder &c) { ColumnEmitter(c, sharedBytesOf(c.mapping)).emit(); }

void emitCudaParts(CudaBuilder &parts, CudaBuilder &sums) {
  const int64_t bytes = std::max(sharedBytesOf(parts.mapping), sharedBytesOf(sums.mapping));
  ColumnEmitter second(sums, bytes);
  ColumnEmitter(parts, bytes).emit(&second);
}

} // namespace mlir::ds::codegen
