//===- KernelEmitter.cpp - One function per kernel -----------------------------===//
//
// The loops of the three kernel classes. A reduction is a stage: one loop over the row (or down the column
// block) for all reductions of a level, with accumulators whose number and order of combination are fixed by
// shapes, so that the sum does not depend on who computes it. Pointwise outputs are a last stage.
//
//===---------------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "NodeEmitter.h"
#include "ReductionMath.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::ds::codegen {

/// Rows shorter than this many vectors get one accumulator; longer ones four, to hide the latency of
/// additions.
static constexpr int64_t kAccumulators = 4;

/// Elements that a column block adds up before it adds to the total: a long column loses fewer bits that way.
static constexpr int64_t kColumnBlock = 32;

/// Stack bytes that one cached row may take.
static constexpr int64_t kCacheBytes = 32 << 10;

int64_t chooseLanes(const LoopNest &nest, unsigned vectorBits) {
  if (!nest.vectorDim)
    return 1;
  int64_t most = vectorBits / 32, size = nest.vectorSize();
  if (ShapedType::isDynamic(size))
    return most;
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(std::max<int64_t>(size, 1)), 2, most);
}

namespace {

class KernelEmitter {
public:
  KernelEmitter(const LoopNest &nest, const Body &body, const Layout &layout, int64_t lanes, ModuleOp module,
                LLVM::LLVMFuncOp function, OpBuilder &builder)
      : nest(nest), body(body), layout(layout), lanes(lanes), function(function),
        s(builder, function.getLoc(), function.addEntryBlock(builder)), b(builder),
        nodes(s, module, function.getArgument(0), lanes), units(divideWork(nest, lanes)) {
    nodes.setNest(&nest);
  }

  void emit();

private:
  // Work units.
  void emitUnit(Value unit);
  Value setDims(Value position, bool reducedOnes);

  // Pointwise loops.
  void emitPieces(Value from, Value to);
  template <class Write>
  void overRange(Value from, Value to, Write write);

  // Reductions.
  void emitRow();
  void emitColumn(Value chunk);
  SmallVector<Value> rowStage(ArrayRef<Node *> level);
  SmallVector<Value> scalarStage(ArrayRef<Node *> level);
  SmallVector<Value> rowLoop(ArrayRef<Node *> level, int64_t from, int64_t to, int64_t copies,
                             SmallVector<Value> totals);
  SmallVector<Value> columnStage(ArrayRef<Node *> level, int64_t copies);
  SmallVector<Value> neutralTotals(ArrayRef<Node *> level, int64_t copies);
  void accumulate(ArrayRef<Node *> level, int64_t copies, SmallVectorImpl<Value> &totals);
  template <class Write>
  SmallVector<Value> overOuterRow(SmallVector<Value> carried, Write write);
  void chooseRowCaches();
  SmallVector<Node *> ofLevel(unsigned level) const;
  unsigned lastLevel() const { return nest.reductions.empty() ? 0 : nest.reductions.back()->level; }

  const LoopNest &nest;
  const Body &body;
  const Layout &layout;
  int64_t lanes;
  LLVM::LLVMFuncOp function;
  ScopedBuilder s;
  OpBuilder &b;
  NodeEmitter nodes;
  WorkUnits units;
  SmallVector<std::unique_ptr<LoopNest>> pieces;
};

//===----------------------------------------------------------------------===//
// Work units
//===----------------------------------------------------------------------===//

/// Sets the kept (or reduced) dimensions but the vector dimension from their row-major position.
Value KernelEmitter::setDims(Value position, bool reducedOnes) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < nest.space.sizes.size(); ++dim)
    if (nest.space.isReduced(dim) == reducedOnes && nest.vectorDim != dim)
      dims.push_back(dim);
  for (size_t k = dims.size(); k-- > 0;) {
    Value size = s.constant(nest.space.sizes[dims[k]]);
    nodes.setDim(dims[k], k == 0 ? position : b.create<arith::RemUIOp>(s.loc, position, size).getResult());
    if (k > 0)
      position = b.create<arith::DivUIOp>(s.loc, position, size);
  }
  return position;
}

void KernelEmitter::emit() {
  Value begin = function.getArgument(2), end = function.getArgument(3);
  if (nest.isEmpty()) {
    // Nothing is written.
  } else if (units.unitIsElement) {
    s.beginBlock();
    emitPieces(begin, end);
    s.endBlock();
  } else {
    if (nest.kind == ds::KernelKind::Row)
      chooseRowCaches();
    auto loop = s.beginLoop(begin, end, 1);
    emitUnit(loop.iv);
    s.endLoop(loop);
  }
  b.create<LLVM::ReturnOp>(s.loc, ValueRange{});
}

void KernelEmitter::emitUnit(Value unit) {
  Value chunk = s.constant(0);
  if (units.chunksPerRow > 1) {
    Value count = s.constant(units.chunksPerRow);
    chunk = b.create<arith::RemUIOp>(s.loc, unit, count);
    unit = b.create<arith::DivUIOp>(s.loc, unit, count);
  }
  setDims(unit, false);
  nodes.setReductionScope(s.depth());
  if (nest.kind == ds::KernelKind::Row)
    return emitRow();
  if (nest.kind == ds::KernelKind::Column)
    return emitColumn(chunk);
  if (!nest.vectorDim)
    return nodes.storeFull(nest, 0);
  Value from = s.constant(0), to = s.constant(nest.vectorSize());
  if (units.chunksPerRow > 1) {
    from = b.create<arith::MulIOp>(s.loc, chunk, s.constant(units.chunk));
    to = b.create<arith::MinSIOp>(s.loc, b.create<arith::AddIOp>(s.loc, from, s.constant(units.chunk)), to);
  }
  emitPieces(from, to);
}

//===----------------------------------------------------------------------===//
// Pointwise loops
//===----------------------------------------------------------------------===//

/// Writes `write(copies)` for whole vectors of [from, to) and once more, masked, for what is left. The vector
/// dimension is set to where the vector starts.
template <class Write>
void KernelEmitter::overRange(Value from, Value to, Write write) {
  unsigned v = *nest.vectorDim;
  APInt low, high;
  bool isStatic = matchPattern(from, m_ConstantInt(&low)) && matchPattern(to, m_ConstantInt(&high));
  Value whole;
  if (isStatic) {
    whole = s.constant(low.getSExtValue() + (high - low).getSExtValue() / lanes * lanes);
  } else {
    Value count = b.create<arith::MaxSIOp>(s.loc, b.create<arith::SubIOp>(s.loc, to, from), s.constant(0));
    whole = b.create<arith::AddIOp>(s.loc, from, b.create<arith::AndIOp>(s.loc, count, s.constant(-lanes)));
  }
  bool hasWhole = !isStatic || (high - low).sge(lanes);
  bool hasRest = !isStatic || (high - low).srem(APInt(64, lanes)) != 0;
  if (hasWhole) {
    auto loop = s.beginLoop(from, whole, lanes);
    nodes.setDim(v, loop.iv);
    write();
    s.endLoop(loop);
  }
  if (!hasRest)
    return;
  // At most one iteration; static bounds make it straight code.
  std::optional<ScopedBuilder::Loop> rest;
  if (isStatic)
    s.beginBlock();
  else
    rest = s.beginLoop(whole, to, lanes);
  Value start = isStatic ? whole : rest->iv;
  nodes.setDim(v, start);
  nodes.setMask(0, nodes.lanesBelow(start, 0, to));
  write();
  nodes.setMask(0, nullptr);
  if (isStatic)
    s.endBlock();
  else
    s.endLoop(*rest);
}

/// Writes the outputs for positions [from, to) of the vector dimension, piece by piece between the cuts.
void KernelEmitter::emitPieces(Value from, Value to) {
  if (nest.cuts.empty()) {
    overRange(from, to, [&] { nodes.storeFull(nest, 0); });
    return;
  }
  SmallVector<int64_t> bounds{0};
  llvm::append_range(bounds, nest.cuts);
  bounds.push_back(nest.vectorSize());
  bool whole = matchPattern(from, m_Constant()) && matchPattern(to, m_Constant());
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    IndexRange window{bounds[k], bounds[k + 1] - 1};
    std::string reason;
    pieces.push_back(buildLoopNest(body, &layout, reason, &window));
    assert(pieces.back() && "a piece of a nest has the nest's form");
    Value low = s.constant(bounds[k]), high = s.constant(bounds[k + 1]);
    if (!whole) {
      low = b.create<arith::MaxSIOp>(s.loc, from, low);
      high = b.create<arith::MinSIOp>(s.loc, to, high);
    }
    nodes.setNest(pieces.back().get());
    overRange(low, high, [&] { nodes.storeFull(*pieces.back(), 0); });
  }
  nodes.setNest(&nest);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Node *> KernelEmitter::ofLevel(unsigned level) const {
  SmallVector<Node *> result;
  for (Node *reduction : nest.reductions)
    if (reduction->level == level)
      result.push_back(reduction);
  return result;
}

/// Adds what `node` needs within one stage; reductions are boundaries.
static void collectNeeded(const Node *node, llvm::SmallPtrSetImpl<const Node *> &needed) {
  if (node->kind == Node::Kind::Reduce || !needed.insert(node).second)
    return;
  for (const Node *operand : node->operands)
    collectNeeded(operand, needed);
}

/// Expensive values that two stages need are computed in the first and kept on the stack.
void KernelEmitter::chooseRowCaches() {
  int64_t rowSize = llvm::alignTo(nest.countOuter(true) * nest.vectorSize(), lanes);
  llvm::DenseMap<const Node *, unsigned> firstStage;
  for (unsigned stage = 1; stage <= lastLevel() + 1; ++stage) {
    llvm::SmallPtrSet<const Node *, 32> needed;
    for (const Node *reduction : ofLevel(stage))
      collectNeeded(reduction->operands[0], needed);
    if (stage == lastLevel() + 1)
      for (const NestOutput &output : nest.outputs)
        if (output.full)
          collectNeeded(output.value, needed);
    for (const Node &candidate : nest.graph->allNodes()) {
      const Node *node = &candidate;
      bool heavy =
          node->kind == Node::Kind::Random ||
          (node->op &&
           isa<ds::ExpOp, ds::LogOp, ds::TanhOp, ds::ErfOp, ds::SigmoidOp, ds::SinOp, ds::CosOp, ds::PowOp>(
               node->op));
      if (!heavy || !needed.contains(node) || !nodes.isVector(node))
        continue;
      auto [it, isFirst] = firstStage.insert({node, stage});
      int64_t bytes = rowSize * memoryType(node->type).getIntOrFloatBitWidth() / 8;
      if (isFirst || nodes.rowCaches.contains(node) || bytes > kCacheBytes)
        continue;
      Value count = s.constant(rowSize);
      Value memory = b.create<LLVM::AllocaOp>(s.loc, LLVM::LLVMPointerType::get(b.getContext()),
                                              memoryType(node->type), count, /*alignment=*/64);
      nodes.rowCaches[node] = {memory, it->second};
    }
  }
}

/// Adds the current position of every copy to the totals: entry (reduction k, copy c) is totals[k * copies +
/// c]. In rows, lanes behind the end stay as they are; columns keep their lanes apart anyway.
void KernelEmitter::accumulate(ArrayRef<Node *> level, int64_t copies, SmallVectorImpl<Value> &totals) {
  for (auto [k, reduction] : llvm::enumerate(level)) {
    for (int64_t copy = 0; copy < copies; ++copy) {
      Value &total = totals[k * copies + copy];
      Value x = nodes.emitVector(reduction->operands[0], copy);
      x = nodes.toCompute(x, reduction->type);
      Value sum = combine(b, s.loc, reduction, total, x);
      Value mask = nest.kind == ds::KernelKind::Row ? nodes.maskOf(copy) : Value();
      total = mask ? b.create<arith::SelectOp>(s.loc, mask, sum, total).getResult() : sum;
    }
  }
}

SmallVector<Value> KernelEmitter::neutralTotals(ArrayRef<Node *> level, int64_t copies) {
  SmallVector<Value> totals;
  for (Node *reduction : level) {
    Value neutral = b.create<arith::ConstantOp>(s.loc, neutralElement(b, reduction));
    totals.append(copies, nest.vectorDim ? nodes.splat(neutral) : neutral);
  }
  return totals;
}

/// Runs `write` for every position of the reduced dimensions outside the vector dimension, with values
/// carried from one to the next; returns the last.
template <class Write>
SmallVector<Value> KernelEmitter::overOuterRow(SmallVector<Value> carried, Write write) {
  int64_t count = nest.countOuter(true);
  if (count == 1) {
    nodes.rowBase = nullptr;
    return write(std::move(carried));
  }
  auto loop = s.beginLoop(s.constant(0), s.constant(count), 1, carried);
  nodes.rowBase = b.create<arith::MulIOp>(s.loc, loop.iv, s.constant(nest.vectorSize()));
  setDims(loop.iv, true);
  return s.endLoop(loop, write(loop.carried));
}

/// Adds vectors [from, to) of the row, `copies` at a time, to the totals.
SmallVector<Value> KernelEmitter::rowLoop(ArrayRef<Node *> level, int64_t from, int64_t to, int64_t copies,
                                          SmallVector<Value> totals) {
  if (from == to)
    return totals;
  auto loop = s.beginLoop(s.constant(from), s.constant(to), lanes * copies, totals);
  nodes.setDim(*nest.vectorDim, loop.iv);
  totals = loop.carried;
  accumulate(level, copies, totals);
  return s.endLoop(loop, totals);
}

/// Totals of all reductions of a level, one vector each.
SmallVector<Value> KernelEmitter::rowStage(ArrayRef<Node *> level) {
  int64_t size = nest.vectorSize(), copies = size >= kAccumulators * lanes ? kAccumulators : 1;
  SmallVector<Value> totals = overOuterRow(neutralTotals(level, copies), [&](SmallVector<Value> totals) {
    int64_t unrolled = size / (lanes * copies) * lanes * copies, whole = size / lanes * lanes;
    totals = rowLoop(level, 0, unrolled, copies, std::move(totals));
    // What is left goes to the first accumulator of each reduction.
    SmallVector<Value> firsts;
    for (size_t k = 0; k < level.size(); ++k)
      firsts.push_back(totals[k * copies]);
    firsts = rowLoop(level, unrolled, whole, 1, std::move(firsts));
    if (whole != size) {
      s.beginBlock();
      Value start = s.constant(whole);
      nodes.setDim(*nest.vectorDim, start);
      nodes.setMask(0, nodes.lanesBelow(start, 0, s.constant(size)));
      accumulate(level, 1, firsts);
      nodes.setMask(0, nullptr);
      s.endBlock();
    }
    for (size_t k = 0; k < level.size(); ++k)
      totals[k * copies] = firsts[k];
    return totals;
  });
  SmallVector<Value> result;
  for (auto [k, reduction] : llvm::enumerate(level)) {
    SmallVector<Value> parts(ArrayRef<Value>(totals).slice(k * copies, copies));
    for (; parts.size() > 1; parts.resize(parts.size() / 2))
      for (size_t i = 0; i < parts.size() / 2; ++i)
        parts[i] = combine(b, s.loc, reduction, parts[2 * i], parts[2 * i + 1]);
    result.push_back(parts[0]);
  }
  return result;
}

void KernelEmitter::emitRow() {
  for (unsigned level = 1; level <= lastLevel(); ++level) {
    nodes.stage = level;
    SmallVector<Node *> reductions = ofLevel(level);
    SmallVector<Value> totals = nest.vectorDim ? rowStage(reductions) : scalarStage(reductions);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals)) {
      Value scalar = nest.vectorDim ? acrossLanes(b, s.loc, reduction, total) : total;
      nodes.define(reduction, 0, nodes.fromCompute(scalar, reduction->type));
    }
  }
  nodes.stage = lastLevel() + 1;
  if (nest.vectorDim && llvm::any_of(nest.outputs, [](const NestOutput &output) { return output.full; }))
    overOuterRow({}, [&](SmallVector<Value> none) {
      overRange(s.constant(0), s.constant(nest.vectorSize()), [&] { nodes.storeFull(nest, 0); });
      return none;
    });
  for (const NestOutput &output : nest.outputs)
    if (!output.full || !nest.vectorDim)
      nodes.store(output, 0);
}

/// Reductions over a single element.
SmallVector<Value> KernelEmitter::scalarStage(ArrayRef<Node *> level) {
  SmallVector<Value> totals = neutralTotals(level, 1);
  accumulate(level, 1, totals);
  return totals;
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Totals of all reductions of a level, `copies` vectors each.
SmallVector<Value> KernelEmitter::columnStage(ArrayRef<Node *> level, int64_t copies) {
  int64_t count = nest.countOuter(true);
  auto overRows = [&](Value from, Value to) {
    auto loop = s.beginLoop(from, to, 1, neutralTotals(level, copies));
    setDims(loop.iv, true);
    SmallVector<Value> totals = loop.carried;
    accumulate(level, copies, totals);
    return s.endLoop(loop, totals);
  };
  if (count <= 2 * kColumnBlock)
    return overRows(s.constant(0), s.constant(count));
  auto blocks = s.beginLoop(s.constant(0), s.constant(count), kColumnBlock, neutralTotals(level, copies));
  Value end = b.create<arith::AddIOp>(s.loc, blocks.iv, s.constant(kColumnBlock));
  SmallVector<Value> parts = overRows(blocks.iv, b.create<arith::MinSIOp>(s.loc, end, s.constant(count)));
  SmallVector<Value> totals = blocks.carried;
  for (auto [k, reduction] : llvm::enumerate(level))
    for (int64_t copy = 0; copy < copies; ++copy) {
      Value &total = totals[k * copies + copy];
      total = combine(b, s.loc, reduction, total, parts[k * copies + copy]);
    }
  return s.endLoop(blocks, totals);
}

void KernelEmitter::emitColumn(Value chunk) {
  int64_t copies = units.chunk / lanes, size = nest.vectorSize();
  Value start = b.create<arith::MulIOp>(s.loc, chunk, s.constant(units.chunk));
  nodes.setDim(*nest.vectorDim, start);
  for (int64_t copy = 0; copy < copies; ++copy)
    nodes.setMask(copy, size % units.chunk ? nodes.lanesBelow(start, copy, s.constant(size)) : Value());
  for (unsigned level = 1; level <= lastLevel(); ++level) {
    SmallVector<Node *> reductions = ofLevel(level);
    SmallVector<Value> totals = columnStage(reductions, copies);
    for (auto [k, reduction] : llvm::enumerate(reductions))
      for (int64_t copy = 0; copy < copies; ++copy)
        nodes.define(reduction, copy, nodes.fromCompute(totals[k * copies + copy], reduction->type));
  }
  if (llvm::any_of(nest.outputs, [](const NestOutput &output) { return output.full; })) {
    auto loop = s.beginLoop(s.constant(0), s.constant(nest.countOuter(true)), 1);
    setDims(loop.iv, true);
    for (int64_t copy = 0; copy < copies; ++copy)
      nodes.storeFull(nest, copy);
    s.endLoop(loop);
  }
  for (const NestOutput &output : nest.outputs)
    for (int64_t copy = 0; !output.full && copy < copies; ++copy)
      nodes.store(output, copy);
}

} // namespace

void emitKernel(const LoopNest &nest, const Body &body, const Layout &layout, unsigned vectorBits,
                llvm::StringRef symbol, ModuleOp module) {
  OpBuilder builder(module.getBodyRegion());
  builder.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(module.getContext()), i64 = builder.getI64Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), {pointer, pointer, i64, i64});
  auto function = builder.create<LLVM::LLVMFuncOp>(module.getLoc(), symbol, type);
  KernelEmitter(nest, body, layout, chooseLanes(nest, vectorBits), module, function, builder).emit();
}

} // namespace mlir::ds::codegen
