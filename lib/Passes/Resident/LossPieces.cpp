//===- LossPieces.cpp - What it would take to make a loss in pieces ---------------===//
#include "LossPieces.h"

#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/Emitter.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;

int64_t LossPieces::shareOf(int64_t bytes, int64_t rows) const {
  return static_cast<int64_t>(std::ceil(double(bytes) * double(rows) / double(allRows)));
}

double LossPieces::moreSeconds(int64_t rows, const ValueCosts &costs) const {
  const auto full = double(allRows / rows);
  const double left = double(allRows % rows) / double(allRows);
  double more = (full + double(left > 0) - 1) * double(kernels) * costs.launchSeconds();
  more += costs.movingSeconds(1.5 * double(sumBytes)); // a kernel rounds the sum: 4 bytes to 2
  for (Operation *op : calls) {
    const bool addsRows = llvm::is_contained(rowSums, op);
    more += full * costs.callSeconds(op, double(rows) / double(allRows), addsRows) - costs.callSeconds(op);
    if (left > 0)
      more += costs.callSeconds(op, left, addsRows);
  }
  return std::max(0.0, more);
}

namespace {

/// Follows one loss from the product of its logits to the products that read their gradient.
class LossFollower {
public:
  LossFollower(CrossEntropyOp loss, const SegmentMemory &memory) : memory(memory) { pieces.loss = loss; }

  std::optional<LossPieces> follow();

private:
  MatmulOp findProduct() const;
  bool visit(Operation &op);
  void addProduct(MatmulOp product);
  void noteMemory(Value value, SmallVector<uint32_t> &where) const;

  const SegmentMemory &memory;
  LossPieces pieces;
  DenseSet<Value> wide;   ///< a row for each token, a column for each word
  DenseSet<Value> ofLoss; ///< computed from the loss itself
};

} // namespace

/// The product that makes the logits, through what ds-split-loss looks through; null where there is none.
MatmulOp LossFollower::findProduct() const {
  Operation *op = pieces.loss->getOperand(0).getDefiningOp();
  while (op && isa<ConvertOp, ReshapeOp, SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<MatmulOp>(op);
}

void LossFollower::noteMemory(Value value, SmallVector<uint32_t> &where) const {
  std::optional<uint32_t> found = memory.find(value);
  if (found && !llvm::is_contained(where, *found))
    where.push_back(*found);
}

/// A product that reads what has all rows and columns: by rows it gives the rows' gradient, and otherwise
/// adds up over them.
void LossFollower::addProduct(MatmulOp product) {
  RankedTensorType right = tensorType(product.getRhs()), result = tensorType(product.getResult());
  const int64_t columns = tensorType(pieces.loss.getLogits()).getShape().back();
  const int64_t summed = right.getShape()[right.getRank() - (product.getTransposeRhs() ? 1 : 2)];
  pieces.calls.push_back(product);
  noteMemory(product.getResult(), pieces.ofAll);
  pieces.end = std::max(pieces.end, memory.momentOf(product) + 1);
  if (summed == columns && !wide.contains(product.getRhs()))
    return;
  pieces.rowSums.push_back(product);
  if (result.getElementTypeBitWidth() < 32)
    pieces.sumBytes += int64_t(sizeof(float)) * result.getNumElements();
}

/// False where the gradient of the logits waits for the loss.
bool LossFollower::visit(Operation &op) {
  auto isIn = [&](const DenseSet<Value> &set) {
    return llvm::any_of(op.getOperands(), [&](Value operand) { return set.contains(operand); });
  };
  const bool readsWide = isIn(wide);
  if (isIn(ofLoss)) {
    if (readsWide)
      return false;
    ofLoss.insert(op.result_begin(), op.result_end());
    return true;
  }
  if (!readsWide)
    return true;
  if (auto product = dyn_cast<MatmulOp>(op)) {
    addProduct(product);
    return true;
  }
  if (&op == pieces.loss)
    ofLoss.insert(pieces.loss.getLoss());
  if (isa<CrossEntropyOp, CrossEntropyGradOp>(op))
    pieces.calls.push_back(&op);
  const int64_t all = tensorType(pieces.loss.getLogits()).getNumElements();
  for (Value result : op.getResults()) {
    if (tensorType(result).getNumElements() < all)
      continue;
    wide.insert(result);
    noteMemory(result, pieces.ofPiece);
    pieces.kernels += formOf(&op) == OpForm::Fused || formOf(&op) == OpForm::Join;
  }
  return true;
}

std::optional<LossPieces> LossFollower::follow() {
  std::optional<ArrayRef<int64_t>> offered = pieces.loss.getPieceRows();
  MatmulOp product = findProduct();
  if (!offered || !product)
    return std::nullopt;
  pieces.allRows = tensorType(pieces.loss.getLogits()).getDimSize(0);
  for (int64_t rows : *offered)
    if (rows > 0 && rows < pieces.allRows)
      pieces.offered.push_back(rows);
  wide.insert(product.getResult());
  pieces.calls.push_back(product);
  noteMemory(product.getResult(), pieces.ofPiece);
  pieces.begin = memory.momentOf(product);
  for (Operation *op = product->getNextNode(); op; op = op->getNextNode())
    if (!visit(*op))
      return std::nullopt;
  if (pieces.offered.empty() || pieces.end == 0) // nothing is trained by it
    return std::nullopt;
  return std::move(pieces);
}

std::vector<LossPieces> mlir::ds::findLossPieces(func::FuncOp func, const SegmentMemory &memory) {
  std::vector<LossPieces> all;
  for (auto loss : func.getOps<CrossEntropyOp>())
    if (std::optional<LossPieces> pieces = LossFollower(loss, memory).follow())
      all.push_back(std::move(*pieces));
  return all;
}
