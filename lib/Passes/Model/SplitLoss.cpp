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
// Whether memory asks for that, and for how many chunks, is part of what is chosen with all else that takes
// the step's memory. For that choice a loss stays whole and says what it offers.
//
//===---------------------------------------------------------------------------===//
#include "SplitLoss.h"
#include "NormalizeLoss.h"
#include "Support/Rows.h"
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPLITLOSS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Whether chunks of `rows` rows save something to speak of.
static bool savesEnough(const LogitsShape &shape, int64_t rows) {
  int64_t saved = (shape.rows - rows) * shape.columns * shape.elementBytes;
  return saved > shape.sumBytes && saved >= kLeastSavedBytes;
}

int64_t mlir::ds::chooseLossRows(const LogitsShape &shape) {
  // As many rows as make the logits about as large as the rows that they are computed from.
  int64_t ratio = llvm::divideCeil(shape.columns, shape.width);
  int64_t rows = llvm::PowerOf2Ceil(llvm::divideCeil(shape.rows, ratio));
  rows = std::max(rows, kLeastLossRows);
  return savesEnough(shape, rows) ? rows : shape.rows;
}

SmallVector<int64_t> mlir::ds::offerLossRows(const LogitsShape &shape) {
  SmallVector<int64_t> offered;
  for (int64_t rows = llvm::PowerOf2Ceil(shape.rows) / 2; rows >= kLeastLossRows; rows /= 2)
    if (savesEnough(shape, rows))
      offered.push_back(rows);
  return offered;
}

namespace {

/// A cross-entropy of a product, and the ops between.
struct LinearLoss {
  CrossEntropyOp loss;
  MatmulOp product;
  SmallVector<Operation *> between; ///< from the loss up: conversions, and what picks and folds rows
};

} // namespace

/// The product that makes the logits, if they can be made in parts: nothing else reads them on the way.
static std::optional<LinearLoss> matchLinearLoss(CrossEntropyOp loss) {
  LinearLoss match{loss, {}, {}};
  Value value = loss.getLogits();
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      bool isLinear = !product.getAccumulator() && product.getEpilogue() == Epilogue::None &&
                      !product.getTransposeLhs() && tensorType(product.getRhs()).getRank() == 2;
      match.product = product;
      return isLinear ? std::optional(match) : std::nullopt;
    }
    if (!op || !(isa<ConvertOp>(op) || keepsColumns(op)))
      return std::nullopt;
    match.between.push_back(op);
    value = op->getOperand(0);
  }
  return std::nullopt;
}

/// What the choice of chunks rests on.
static LogitsShape shapeOf(LinearLoss &match) {
  RankedTensorType logits = tensorType(match.loss.getLogits()),
                   product = tensorType(match.product.getResult());
  RankedTensorType weight = tensorType(match.product.getRhs());
  LogitsShape shape;
  shape.rows = logits.getDimSize(0);
  shape.columns = logits.getDimSize(1);
  shape.width = weight.getNumElements() / shape.columns;
  shape.elementBytes = product.getElementTypeBitWidth() / 8;
  if (logits.getElementType() != product.getElementType())
    shape.elementBytes += logits.getElementTypeBitWidth() / 8;
  // Chunks add up in f32 what one product of 16 bits would have written rounded.
  if (weight.getElementTypeBitWidth() < 32)
    shape.sumBytes = 4 * weight.getNumElements();
  return shape;
}

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

/// `value` cut along its rows, `rows` at a time; the last piece has what is left.
static ResultRange splitRows(OpBuilder &builder, Location loc, Value value, int64_t rows) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<Type> types;
  for (int64_t begin = 0; begin < type.getDimSize(0); begin += rows) {
    shape[0] = std::min(rows, type.getDimSize(0) - begin);
    types.push_back(type.clone(shape));
  }
  return builder.create<SplitOp>(loc, types, value, /*dim=*/0).getPieces();
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
  ResultRange inputs = splitRows(builder, product.getLoc(), pickRows(builder, match), rows);
  ResultRange targets = splitRows(builder, loss.getLoc(), loss.getTargets(), rows);
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
    ModuleOp module = getOperation();
    const TrainingOptions training = getTraining(module);
    // First: chunks take over what the whole loss is divided by.
    if (training.lossMean == LossMean::Tokens && failed(normalizeLoss(module)))
      return signalPassFailure();
    search = getDecisions(module).search.value_or(PlanSearch());
    SmallVector<CrossEntropyOp> losses;
    module.walk([&](CrossEntropyOp loss) { losses.push_back(loss); });
    for (CrossEntropyOp loss : losses)
      visit(loss, training.lossChunks);
  }

  /// `chunks`: how many are asked for; 0: as many as the module says, or else the shapes suggest.
  void visit(CrossEntropyOp loss, int64_t chunks) {
    if (chunks == 1)
      return;
    std::optional<LinearLoss> match = matchLinearLoss(loss);
    if (!match) {
      if (remarks)
        loss.emitRemark("stays whole: its logits are no product that nothing else reads");
      return;
    }
    LogitsShape shape = shapeOf(*match);
    if (search.offersLoss)
      return offer(loss, shape, chunks);
    int64_t rows = chooseRows(shape, chunks);
    if (rows >= shape.rows) {
      if (remarks)
        loss.emitRemark("stays whole: chunks of its ") << shape.rows << " rows would save too little";
      return;
    }
    int64_t made = llvm::divideCeil(shape.rows, rows);
    if (remarks)
      loss.emitRemark("made in ") << made << " chunks of " << rows << " rows";
    noteChunks(made, rows);
    splitLoss(*match, rows);
  }

  int64_t chooseRows(const LogitsShape &shape, int64_t chunks) {
    if (chunks > 0)
      return llvm::divideCeil(shape.rows, chunks);
    if (!search.lossRows)
      return chooseLossRows(shape);
    return llvm::is_contained(offerLossRows(shape), *search.lossRows) ? *search.lossRows : shape.rows;
  }

  /// Says at `loss`, which stays whole, in which chunks it could be made.
  void offer(CrossEntropyOp loss, const LogitsShape &shape, int64_t chunks) {
    SmallVector<int64_t> rows;
    if (chunks > 0)
      rows.push_back(llvm::divideCeil(shape.rows, chunks));
    else
      rows = offerLossRows(shape);
    llvm::erase_if(rows, [&](int64_t of) { return of >= shape.rows; });
    if (!rows.empty())
      loss.setPieceRows(rows);
  }

  /// The report tells of the loss with most chunks.
  void noteChunks(int64_t chunks, int64_t rows) {
    changeDecisions(getOperation(), [&](Decisions &decisions) {
      if (!decisions.lossSplit || decisions.lossSplit->chunks < chunks)
        decisions.lossSplit = LossSplit{chunks, rows, std::nullopt};
    });
  }

  PlanSearch search; ///< what the planner asks for
};
} // namespace
