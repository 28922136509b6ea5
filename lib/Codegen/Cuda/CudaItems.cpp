//===- CudaItems.cpp - One launch over the buffers of several items --------===//
//
// The blocks of all items are numbered through. A block looks its number up in the table that the launch
// was given (ItemTable), and then is a block of that item: no item costs more than its own blocks, and
// the search a few loads of constant memory for each block's worth of elements.
//
//===---------------------------------------------------------------------------===//

#include "CudaBuilder.h"
#include "ds/Runtime/Program/Program.h"

namespace mlir::ds::codegen {
namespace {

class ItemsEmitter {
public:
  explicit ItemsEmitter(CudaBuilder &c)
      : c(c), b(c.b), s(c.s), rowWords(::ds::rt::ItemTable::rowWords(c.operands.countInTable())) {}

  void emit(const Body &body, const Layout &layout);

private:
  Value findItem(Value block);
  Value word(Value item, int64_t column, Type type);
  void setOperands(NodeEmitter &emitter, Value item);

  CudaBuilder &c;
  OpBuilder &b;
  ScopedBuilder &s;
  const int64_t rowWords;
};

/// A word of the item's row.
Value ItemsEmitter::word(Value item, int64_t column, Type type) {
  return c.thread.tableWord(b, s.loc, c.add(c.mul(item, rowWords), s.constant(column)), type);
}

/// The last item that starts at `block` or before, by halving: rows that nobody uses start at infinity.
Value ItemsEmitter::findItem(Value block) {
  int64_t last = c.operands.items - 1, reach = 0;
  Value item = s.constant(0);
  for (int64_t step = llvm::PowerOf2Ceil(last + 1) / 2; step > 0; step /= 2) {
    Value next = c.add(item, s.constant(step));
    reach += step;
    if (reach > last)
      next = b.create<arith::MinSIOp>(s.loc, next, s.constant(last));
    Value isLater = c.isBelow(block, word(next, 0, b.getI64Type()));
    item = b.create<arith::SelectOp>(s.loc, isLater, item, next);
  }
  return item;
}

/// Gives `emitter` the item's buffers, in the innermost scope.
void ItemsEmitter::setOperands(NodeEmitter &emitter, Value item) {
  int64_t column = 2;
  for (auto [number, alignment] : llvm::enumerate(c.operands.alignments))
    if (!c.operands.isGiven(number))
      emitter.memory.setBuffer(number, word(item, column++, LLVM::LLVMPointerType::get(b.getContext())),
                               alignment);
}

void ItemsEmitter::emit(const Body &body, const Layout &layout) {
  int64_t lanes = c.mapping.lanes;
  std::string reason;
  c.pieces.push_back(buildLoopNest(body, &layout, reason)); // nodes of their own for the elements at the end
  NodeEmitter singles(s, c.module, Value(), 1);
  c.setOperands(singles);
  auto blocks = s.beginLoop(c.own.blockIndex, c.thread.param(b, s.loc, 0), c.own.blockCount);
  Value item = findItem(blocks.iv), elements = word(item, 1, b.getI64Type());
  Value own = b.create<arith::SubIOp>(s.loc, blocks.iv, word(item, 0, b.getI64Type()));
  Value start = c.mul(c.add(c.mul(own, c.mapping.blockThreads), c.own.threadIndex), lanes);
  setOperands(c.nodes, item);
  setOperands(singles, item);
  Value isWhole = c.isBelow(c.add(start, s.constant(lanes - 1)), elements);
  Block *exit = s.beginIf(isWhole);
  c.nodes.position.setDim(*c.nest.vectorDim, start);
  c.nodes.storeFull(c.nest, 0);
  s.endIf(exit);
  if (lanes > 1) {
    auto rest = s.beginLoop(b.create<arith::SelectOp>(s.loc, isWhole, elements, start), elements, 1);
    storeSingles(c, singles, *c.pieces.back(), rest.iv);
    s.endLoop(rest);
  }
  s.endLoop(blocks);
}

} // namespace

void emitCudaItems(CudaBuilder &c, const Body &body, const Layout &layout) {
  ItemsEmitter(c).emit(body, layout);
}

} // namespace mlir::ds::codegen
