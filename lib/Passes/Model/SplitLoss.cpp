//===- SplitLoss.cpp - Logits and their loss, some rows at a time ----------------===//
//
// Logits have a row for each token and a column for each word of the vocabulary, and backward overwrites them
// with their gradient: they are often the largest value of a step, needed for a moment only. A loss is a sum
// over rows, so the rows can be taken in chunks: logits, loss, gradient and the products that consume it,
// then the next chunk in the same memory (Hsu et al., "Liger Kernel", 2024, section 3.2). What this pass
// writes is the forward alone, as plain ops: differentiation gives the rest, and ds-sink-loss brings each
// chunk's forward to its backward.
//
// The mean is over the rows of all chunks, of which backward's first chunk must know: how many rows are not
// ignored is counted from the targets, ahead of all products.
//
// The price: the products have fewer rows each, and the weight's gradient is read and written once per chunk.
//
//===---------------------------------------------------------------------------===//
#include "LinearLoss.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPLITLOSS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// The rows that the logits are computed from, in the logits' order: [N, K].
static Value pickRows(OpBuilder &builder, LinearLoss &match) {
  Value rows = match.product.getLhs();
  int64_t width = tensorType(rows).getShape().back();
  for (Operation *op : llvm::reverse(match.between)) {
    Emitter emit(builder, op->getLoc());
    SmallVector<int64_t> shape(tensorType(op->getResult(0)).getShape());
    shape.back() = width;
    if (isa<ReshapeOp>(op))
      rows = emit.reshape(rows, shape);
    else if (auto slice = dyn_cast<SliceOp>(op))
      rows = builder.create<SliceOp>(op->getLoc(), tensorType(rows).clone(shape), rows, slice.getOffsets(),
                                     slice.getStrides());
  }
  return rows;
}

/// The rows of `value` by the rank that is to have them: [ranks, rows of one, ...].
static Value byRank(Emitter &emit, Value value, RowParts parts) {
  const RankedTensorType type = tensorType(value);
  const ArrayRef<int64_t> width = type.getShape().drop_front();
  const int64_t own = type.getDimSize(0) / parts.ranks;
  SmallVector<int64_t> all = {parts.ranks, own},
                       apart = {parts.sequences, parts.ranks, own / parts.sequences};
  all.append(width.begin(), width.end());
  apart.append(width.begin(), width.end());
  if (parts.sequences == 1)
    return emit.reshape(value, all);
  SmallVector<int64_t> order = dimRange(0, static_cast<int64_t>(apart.size()));
  std::swap(order[0], order[1]);
  return emit.reshape(emit.getBuilder().create<TransposeOp>(emit.getLoc(), emit.reshape(value, apart), order),
                      all);
}

/// `value` cut along its rows, `rows` of each rank at a time; the last piece has what is left.
static SmallVector<Value> splitRows(OpBuilder &builder, Location loc, Value value, int64_t rows,
                                    RowParts parts) {
  Emitter emit(builder, loc);
  const bool isShared = parts.ranks > 1;
  const int64_t dim = isShared ? 1 : 0;
  if (isShared)
    value = byRank(emit, value, parts);
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<Type> types;
  for (int64_t begin = 0; begin < type.getDimSize(dim); begin += rows) {
    shape[dim] = std::min(rows, type.getDimSize(dim) - begin);
    types.push_back(type.clone(shape));
  }
  SmallVector<Value> pieces(builder.create<SplitOp>(loc, types, value, dim).getPieces());
  if (!isShared)
    return pieces;
  for (Value &piece : pieces) {
    SmallVector<int64_t> merged(tensorType(piece).getShape().drop_front());
    merged[0] *= parts.ranks;
    piece = emit.reshape(piece, merged);
  }
  return pieces;
}

/// Rank-0 f32: the targets that are not `ignored`. Exact below 2^24, as cross-entropy's own count is.
static Value countTargets(Emitter &emit, Value targets, int64_t ignored) {
  Value isRead = emit.compare(Predicate::NE, targets, emit.splatLike(targets, static_cast<double>(ignored)));
  return emit.sum(emit.convert(isRead, emit.getBuilder().getF32Type()), {0});
}

/// Rewrites `match` so that at most `rows` rows of logits are made at once.
static void splitLoss(LinearLoss &match, int64_t rows) {
  CrossEntropyOp loss = match.loss;
  MatmulOp product = match.product;
  OpBuilder builder(loss);
  Emitter emit(builder, loss.getLoc());
  Value denominator = loss.getDenominator();
  if (!denominator)
    denominator = countTargets(emit, loss.getTargets(), loss.getIgnoreIndex());
  SmallVector<Value> inputs =
      splitRows(builder, product.getLoc(), pickRows(builder, match), rows, match.parts);
  SmallVector<Value> targets = splitRows(builder, loss.getLoc(), loss.getTargets(), rows, match.parts);
  RankedTensorType productType = tensorType(product.getResult());
  Type read = tensorType(loss.getLogits()).getElementType();
  Value total;
  for (auto [input, target] : llvm::zip_equal(inputs, targets)) {
    auto type = productType.clone({tensorType(input).getDimSize(0), productType.getShape().back()});
    auto logits = builder.create<MatmulOp>(product.getLoc(), type, input, product.getRhs(), product.getBias(),
                                           /*transposeLhs=*/false, product.getTransposeRhs());
    auto part = builder.create<CrossEntropyOp>(loss.getLoc(), emit.convert(logits.getResult(), read), target,
                                               denominator, loss.getIgnoreIndex());
    if (loss.getCap())
      part.setCapAttr(loss.getCapAttr());
    total = total ? emit.add(total, part.getLoss()) : part.getLoss();
  }
  if (!loss.getCount().use_empty())
    loss.getCount().replaceAllUsesWith(countTargets(emit, loss.getTargets(), loss.getIgnoreIndex()));
  loss.getLoss().replaceAllUsesWith(total);
  loss.erase();
  for (Operation *op : match.between)
    op->erase();
  product.erase();
}

namespace {
struct SplitLoss : mlir::ds::impl::SplitLossBase<SplitLoss> {
  using SplitLossBase::SplitLossBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    const int64_t chunks = getTraining(getOperation()).lossChunks;
    SmallVector<CrossEntropyOp> losses;
    getOperation().walk([&](CrossEntropyOp loss) { losses.push_back(loss); });
    for (CrossEntropyOp loss : losses)
      if (loss.getPieceRows())
        visit(loss, chunks);
  }

  /// `chunks`: how many are asked for; 0: none.
  void visit(CrossEntropyOp loss, int64_t chunks) {
    std::optional<LinearLoss> match = matchLinearLoss(loss);
    std::optional<int64_t> chosen = match ? chooseRows(*match, chunks) : std::nullopt;
    if (!chosen || !llvm::is_contained(*loss.getPieceRows(), *chosen))
      return;
    int64_t made = llvm::divideCeil(shapeOf(*match).rows, *chosen);
    if (remarks)
      loss.emitRemark("made in ") << made << " chunks of " << *chosen << " rows";
    noteChunks(made, *chosen);
    splitLoss(*match, *chosen);
  }

  /// Rows of a chunk; nothing: all.
  std::optional<int64_t> chooseRows(LinearLoss &match, int64_t chunks) {
    if (!rows.is(LossWord::Shapes))
      return rows.getNumber();
    return chunks > 0 ? match.loss.getPieceRows()->front() : chooseLossRows(shapeOf(match));
  }

  /// The report tells of the loss with most chunks.
  void noteChunks(int64_t chunks, int64_t chunkRows) {
    changeDecisions(getOperation(), [&](Decisions &decisions) {
      if (!decisions.lossSplit || decisions.lossSplit->chunks < chunks)
        decisions.lossSplit = LossSplit{chunks, chunkRows, std::nullopt};
    });
  }
};
} // namespace
