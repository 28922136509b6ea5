//===- LinearLoss.cpp - A loss whose logits are a product ------------------------===//
#include "LinearLoss.h"

#include "Support/Rows.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/MeshShape.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// How many rows
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// What may be made in parts
//===----------------------------------------------------------------------===//

/// How ranks have the rows of what `match` has found; nothing where they have no equal parts of each
/// sequence, [sequences, tokens, width], or where not all of its tokens are rows.
static std::optional<RowParts> findParts(LinearLoss &match) {
  const MeshShape mesh = getMeshShape(match.loss->getParentOfType<ModuleOp>());
  const int64_t ranks = mesh.mesh.size(mesh.sequences());
  if (ranks == 1)
    return RowParts();
  Value rows = match.product.getLhs();
  while (tensorType(rows).getRank() != 3 && rows.getDefiningOp<ReshapeOp>())
    rows = rows.getDefiningOp()->getOperand(0);
  const ArrayRef<int64_t> shape = tensorType(rows).getShape();
  const bool isWhole = shape.size() == 3 &&
                       shape[0] * shape[1] == tensorType(match.loss.getLogits()).getDimSize(0) &&
                       llvm::none_of(match.between, [](Operation *op) { return isa<SliceOp>(op); });
  return isWhole && shape[1] % ranks == 0 ? std::optional(RowParts{shape[0], ranks}) : std::nullopt;
}

std::optional<LinearLoss> mlir::ds::matchLinearLoss(CrossEntropyOp loss) {
  LinearLoss match{loss, {}, {}, {}};
  Value value = loss.getLogits();
  while (value.hasOneUse()) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      bool isLinear = !product.getAccumulator() && product.getEpilogue() == Epilogue::None &&
                      !product.getTransposeLhs() && tensorType(product.getRhs()).getRank() == 2;
      match.product = product;
      const std::optional<RowParts> parts = findParts(match);
      match.parts = parts.value_or(RowParts());
      return isLinear && parts ? std::optional(match) : std::nullopt;
    }
    if (!op || !(isa<ConvertOp>(op) || keepsColumns(op)))
      return std::nullopt;
    match.between.push_back(op);
    value = op->getOperand(0);
  }
  return std::nullopt;
}

LogitsShape mlir::ds::shapeOf(LinearLoss &match) {
  RankedTensorType logits = tensorType(match.loss.getLogits()),
                   product = tensorType(match.product.getResult());
  RankedTensorType weight = tensorType(match.product.getRhs());
  LogitsShape shape;
  shape.rows = logits.getDimSize(0) / match.parts.ranks;
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
