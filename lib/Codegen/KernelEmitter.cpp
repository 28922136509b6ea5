//===- KernelEmitter.cpp - One function per kernel -----------------------------===//
//
// A function goes through a range of work units. A unit of a pointwise kernel is a piece of a row of outputs;
// rows and columns of reductions stand in files of their own.
//
//===---------------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "KernelBuilder.h"
#include "mlir/IR/Matchers.h"

namespace mlir::ds::codegen {

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
  KernelEmitter(KernelBuilder &k, const Body &body, const Layout &layout)
      : k(k), s(k.s), b(k.b), nodes(k.nodes), nest(k.nest), body(body), layout(layout) {}

  void emit(Value begin, Value end);

private:
  void emitUnit(Value unit);
  void emitPieces(Value from, Value to);

  KernelBuilder &k;
  ScopedBuilder &s;
  OpBuilder &b;
  NodeEmitter &nodes;
  const LoopNest &nest;
  const Body &body;
  const Layout &layout;
  SmallVector<std::unique_ptr<LoopNest>> pieces; ///< whose nodes have been written
};

void KernelEmitter::emit(Value begin, Value end) {
  if (nest.isEmpty()) {
    // Nothing is written.
  } else if (k.units.unitIsElement) {
    s.beginBlock();
    emitPieces(begin, end);
    s.endBlock();
  } else {
    if (nest.kind == ds::KernelKind::Row)
      chooseRowCaches(k);
    auto loop = s.beginLoop(begin, end, 1);
    emitUnit(loop.iv);
    s.endLoop(loop);
  }
  b.create<LLVM::ReturnOp>(s.loc, ValueRange{});
}

void KernelEmitter::emitUnit(Value unit) {
  Value chunk = s.constant(0);
  if (k.units.chunksPerRow > 1) {
    Value count = s.constant(k.units.chunksPerRow);
    chunk = b.create<arith::RemUIOp>(s.loc, unit, count);
    unit = b.create<arith::DivUIOp>(s.loc, unit, count);
  }
  k.setDims(unit, false);
  nodes.position.setReductionScope(s.depth());
  if (nest.kind == ds::KernelKind::Row)
    return emitKernelRow(k);
  if (nest.kind == ds::KernelKind::Column)
    return emitKernelColumns(k, chunk);
  if (!nest.vectorDim)
    return nodes.storeFull(nest, 0);
  Value from = s.constant(0), to = s.constant(nest.vectorSize());
  if (k.units.chunksPerRow > 1) {
    from = b.create<arith::MulIOp>(s.loc, chunk, s.constant(k.units.chunk));
    to = b.create<arith::MinSIOp>(s.loc, b.create<arith::AddIOp>(s.loc, from, s.constant(k.units.chunk)), to);
  }
  emitPieces(from, to);
}

/// Writes the outputs for positions [from, to) of the vector dimension, piece by piece between the cuts.
void KernelEmitter::emitPieces(Value from, Value to) {
  if (nest.cuts.empty()) {
    k.overRange(from, to, [&] { nodes.storeFull(nest, 0); });
    return;
  }
  SmallVector<int64_t> bounds{0};
  llvm::append_range(bounds, nest.cuts);
  bounds.push_back(nest.vectorSize());
  bool whole = matchPattern(from, m_Constant()) && matchPattern(to, m_Constant());
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    IndexRange window{bounds[i], bounds[i + 1] - 1};
    std::string reason;
    pieces.push_back(buildLoopNest(body, &layout, reason, &window));
    assert(pieces.back() && "a piece of a nest has the nest's form");
    Value low = s.constant(bounds[i]), high = s.constant(bounds[i + 1]);
    if (!whole) {
      low = b.create<arith::MaxSIOp>(s.loc, from, low);
      high = b.create<arith::MinSIOp>(s.loc, to, high);
    }
    nodes.position.setNest(pieces.back().get());
    k.overRange(low, high, [&] { nodes.storeFull(*pieces.back(), 0); });
  }
  nodes.position.setNest(&nest);
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
  KernelBuilder kernel(nest, chooseLanes(nest, vectorBits), module, function, builder);
  KernelEmitter(kernel, body, layout).emit(function.getArgument(2), function.getArgument(3));
}

} // namespace mlir::ds::codegen
