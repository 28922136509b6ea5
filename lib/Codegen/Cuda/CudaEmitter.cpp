//===- CudaEmitter.cpp - One CUDA kernel per region ----------------------------===//
//
// Blocks loop over the work with the grid's size as step, so that any number of blocks does. Pointwise
// kernels are here; rows, columns and launches of several items have files of their own.
//
//===---------------------------------------------------------------------------===//

#include "CudaEmitter.h"
#include "CudaBuilder.h"
#include "ds/Runtime/Program/Program.h"

namespace mlir::ds::codegen {
namespace {

/// The first thread of the first block does everything.
void emitSingle(CudaBuilder &c) {
  Value number = c.add(c.own.threadIndex, c.mul(c.own.blockIndex, c.mapping.blockThreads));
  Block *exit = c.s.beginIf(c.isBelow(number, 1));
  c.nodes.position.setReductionScope(c.s.depth());
  for (unsigned level = 1; level <= c.nest.lastLevel(); ++level) {
    SmallVector<Node *> reductions = c.nest.reductionsOf(level);
    SmallVector<Value> totals = c.neutralTotals(reductions);
    c.accumulate(reductions, 0, Value(), totals);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
      c.nodes.define(reduction, 0, c.nodes.fromCompute(total, reduction->type));
  }
  for (const NestOutput &output : c.nest.outputs)
    c.nodes.emit(output.value, 0);
  for (const NestOutput &output : c.nest.outputs)
    c.nodes.store(output, 0);
  c.s.endIf(exit);
}

/// Writes the outputs at `start` of the vector dimension: in the piece between cuts that it lies in.
void emitPieces(CudaBuilder &c, const Body &body, const Layout &layout, Value start) {
  unsigned v = *c.nest.vectorDim;
  if (c.nest.cuts.empty()) {
    c.nodes.position.setDim(v, start);
    return c.nodes.storeFull(c.nest, 0);
  }
  SmallVector<int64_t> bounds{0};
  llvm::append_range(bounds, c.nest.cuts);
  bounds.push_back(c.nest.vectorSize());
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    IndexRange window{bounds[k], bounds[k + 1] - 1};
    std::string reason;
    std::unique_ptr<LoopNest> piece = buildLoopNest(body, &layout, reason, &window);
    assert(piece && "a piece of a nest has the nest's form");
    Value low = c.s.constant(bounds[k]);
    Value inside = c.b.create<arith::CmpIOp>(c.s.loc, arith::CmpIPredicate::sge, start, low);
    Block *exit = c.s.beginIf(c.both(inside, c.isBelow(start, bounds[k + 1])));
    c.nodes.position.setDim(v, start);
    c.nodes.position.setNest(piece.get());
    c.nodes.storeFull(*piece, 0);
    c.s.endIf(exit);
    c.pieces.push_back(std::move(piece));
  }
  c.nodes.position.setNest(&c.nest);
}

void emitPointwise(CudaBuilder &c, const Body &body, const Layout &layout) {
  int64_t vectors = c.mapping.extent, perRow = c.mapping.rowVectors;
  Value first = c.add(c.own.threadIndex, c.mul(c.own.blockIndex, c.mapping.blockThreads));
  Value step = c.mul(c.own.blockCount, c.mapping.blockThreads);
  auto loop = c.s.beginLoop(first, c.s.constant(vectors), step);
  Value vector = loop.iv;
  if (perRow < vectors) {
    c.setDims(c.quotient(vector, perRow, vectors), false);
    vector = c.remainder(vector, perRow, vectors);
  }
  emitPieces(c, body, layout, c.mul(vector, c.mapping.lanes));
  c.s.endLoop(loop);
}

/// Any number of elements: whole vectors, then what is left, one element per thread of the first block.
void emitDynamic(CudaBuilder &c, const Body &body, const Layout &layout) {
  unsigned v = *c.nest.vectorDim;
  int64_t lanes = c.mapping.lanes;
  Value elements = c.thread.param(c.b, c.s.loc, 0);
  Value whole = c.b.create<arith::AndIOp>(c.s.loc, elements, c.s.constant(-lanes));
  Value number = c.add(c.own.threadIndex, c.mul(c.own.blockIndex, c.mapping.blockThreads));
  auto loop =
      c.s.beginLoop(c.mul(number, lanes), whole, c.mul(c.own.blockCount, c.mapping.blockThreads * lanes));
  c.nodes.position.setDim(v, loop.iv);
  c.nodes.storeFull(c.nest, 0);
  c.s.endLoop(loop);
  if (lanes == 1)
    return;
  // Nodes of their own, for a node is remembered with the number of lanes it was written for.
  std::string reason;
  c.pieces.push_back(buildLoopNest(body, &layout, reason));
  NodeEmitter singles(c.s, c.module, Value(), 1);
  c.setOperands(singles);
  Value rest = c.add(whole, number);
  Block *exit = c.s.beginIf(c.isBelow(rest, elements));
  storeSingles(c, singles, *c.pieces.back(), rest);
  c.s.endIf(exit);
}

} // namespace

void storeSingles(CudaBuilder &c, NodeEmitter &singles, const LoopNest &piece, Value start) {
  singles.position.setNest(&piece);
  singles.hasNativeBf16 = c.nodes.hasNativeBf16;
  singles.position.setDim(*piece.vectorDim, start);
  for (const NestOutput &output : piece.outputs)
    singles.emit(output.value, 0);
  for (const NestOutput &output : piece.outputs)
    singles.store(output, 0);
}

/// The operands of `kernel`, whose addresses are multiples of `alignments`.
static CudaOperands describeOperands(KernelOp kernel, ArrayRef<uint32_t> alignments) {
  CudaOperands operands;
  operands.alignments.assign(alignments.begin(), alignments.end());
  for (Type type : kernel.getBuffers().getAsValueRange<TypeAttr>())
    operands.isScalar.push_back(cast<BufferType>(type).getTensor().getRank() == 0);
  operands.items = kernel.getItems().value_or(0);
  return operands;
}

::ds::Result<CudaKernel> planCudaKernel(KernelOp kernel, ArrayRef<uint32_t> alignments) {
  CudaKernel result;
  result.sources = readStages(kernel);
  for (const KernelBody &source : result.sources) {
    auto nest = makeNest(kernel, source);
    if (!nest)
      return nest.error();
    result.nests.push_back(std::move(*nest));
  }
  result.mappings.push_back(mapToCuda(*result.nests[0]));
  if (result.nests.size() > 1) {
    std::optional<CudaMapping> sums = mapParts(*result.nests[0], result.mappings[0], *result.nests[1]);
    if (!sums)
      return ::ds::Error{::ds::ExitCode::Internal,
                         "kernel @" + kernel.getSymName().str() +
                             " has stages that share no strips of columns",
                         "ds-join-column-sums must ask canLaunchStages() before it makes a kernel"};
    result.mappings.push_back(*sums);
  }
  result.operands = describeOperands(kernel, alignments);
  return result;
}

/// Writes a kernel of one stage.
static void emitStage(CudaBuilder &c, const KernelBody &source) {
  if (c.nest.isEmpty())
    return; // nothing is written
  if (!c.nest.vectorDim)
    emitSingle(c);
  else if (c.operands.items)
    emitCudaItems(c, source.body, source.layout);
  else if (c.nest.isDynamic())
    emitDynamic(c, source.body, source.layout);
  else if (c.nest.kind == ds::KernelKind::Row)
    emitCudaRows(c);
  else if (c.nest.kind == ds::KernelKind::Column)
    emitCudaColumns(c);
  else
    emitPointwise(c, source.body, source.layout);
}

void emitCudaKernel(const CudaKernel &kernel, StringRef symbol, CudaThread &thread, ModuleOp module) {
  OpBuilder builder(module.getContext());
  const CudaOperands &operands = kernel.operands;
  int64_t rowWords = ::ds::rt::ItemTable::rowWords(operands.countInTable());
  CudaSignature signature{operands.countGiven(), kernel.nests[0]->isDynamic() ? 1u : 0u,
                          operands.items * rowWords, unsigned(kernel.mappings[0].blockThreads)};
  LLVM::LLVMFuncOp function = thread.makeFunction(module, symbol, signature);
  ScopedBuilder scoped(builder, function.getLoc(), function.addEntryBlock(builder));
  CudaBuilder c(*kernel.nests[0], kernel.mappings[0], thread, module, scoped, operands);
  if (kernel.nests.size() > 1) {
    CudaBuilder sums(*kernel.nests[1], kernel.mappings[1], thread, module, scoped, operands);
    emitCudaParts(c, sums);
  } else {
    emitStage(c, kernel.sources[0]);
  }
  builder.create<LLVM::ReturnOp>(module.getLoc(), ValueRange{});
}

} // namespace mlir::ds::codegen
