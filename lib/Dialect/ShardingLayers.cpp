//===- ShardingLayers.cpp - Along which numbers layers can be cut ------------------===//
//
// The part of the table in Sharding.cpp that is of products, attention, losses, tables and convolutions.
//
//===---------------------------------------------------------------------------===//
#include "ShardingRules.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// The operands of a product that a factor has a place in.
struct ProductFactors {
  explicit ProductFactors(MatmulOp op) : op(op), rank(tensorType(op.getResult()).getRank()) {}

  FactorDim &placeOf(ShardingFactor &factor, Value operand) {
    for (auto [index, value] : llvm::enumerate(op->getOperands()))
      if (value == operand && !factor.operands[index].has())
        return factor.operands[index];
    llvm_unreachable("a product that does not read its operand");
  }
  /// What the results and all that has their type have.
  void inResult(ShardingFactor &factor, int64_t dim) {
    for (FactorDim &place : factor.results)
      place.dim = dim;
    for (Value like : {op.getAccumulator(), op.getInput()})
      if (like)
        placeOf(factor, like).dim = dim;
  }
  ShardingFactor rows(int64_t dim, int64_t lhsDim) {
    ShardingFactor factor = makeFactor(op, shapeOf(op.getResult())[dim]);
    factor.operands[0].dim = lhsDim;
    inResult(factor, dim);
    return factor;
  }

  MatmulOp op;
  int64_t rank;
};
} // namespace

ShardingRule mlir::ds::ruleOf(MatmulOp op) {
  ProductFactors product(op);
  ShardingRule rule;
  const int64_t rank = product.rank;
  const bool isBatched = tensorType(op.getRhs()).getRank() > 2;
  for (int64_t dim = 0; dim + 2 < rank; ++dim) {
    ShardingFactor batch = product.rows(dim, dim);
    if (isBatched)
      batch.operands[1].dim = dim;
    addFactor(rule, std::move(batch));
  }
  const int64_t lhsRank = tensorType(op.getLhs()).getRank(), rhsRank = tensorType(op.getRhs()).getRank();
  addFactor(rule, product.rows(rank - 2, lhsRank - (op.getTransposeLhs() ? 1 : 2)));
  ShardingFactor columns = makeFactor(op, shapeOf(op.getResult()).back());
  columns.operands[1].dim = rhsRank - (op.getTransposeRhs() ? 2 : 1);
  if (op.getBias())
    product.placeOf(columns, op.getBias()).dim = 0;
  product.inResult(columns, rank - 1);
  addFactor(rule, std::move(columns));
  if (op.getEpilogue() != Epilogue::None)
    return rule;
  const int64_t inner = lhsRank - (op.getTransposeLhs() ? 2 : 1);
  ShardingFactor sum = makeFactor(op, shapeOf(op.getLhs())[inner], FactorKind::Sum);
  sum.operands[0].dim = inner;
  sum.operands[1].dim = rhsRank - (op.getTransposeRhs() ? 1 : 2);
  if (op.getBias())
    product.placeOf(sum, op.getBias()).lack = FactorDim::Lack::Once;
  if (op.getAccumulator())
    product.placeOf(sum, op.getAccumulator()).lack = FactorDim::Lack::Addend;
  addFactor(rule, std::move(sum));
  return rule;
}

/// What attention and its gradient share. Operands that a rank has parts of are named by their dimension of
/// heads: 2 of what is [B, T, H, D], 1 of the lse and the mask.
template <typename OpT>
static ShardingRule attentionRule(OpT op) {
  ShardingRule rule;
  const auto lse = shapeOf(op.getLse());
  auto place = [&](ShardingFactor &factor, bool isHeads, bool withKeys) {
    auto of = [&](Value value) -> FactorDim {
      FactorDim at;
      const int64_t wanted = isHeads ? 1 : 0;
      const int64_t rank = tensorType(value).getRank();
      if (value == op.getSlopes()) {
        at.dim = isHeads ? 0 : -1;
      } else if (value == op.getMask()) {
        at.dim = shapeOf(value)[wanted] == lse[wanted] ? wanted : -1;
      } else if (value == op.getRng() || value == op.getFirstHead()) {
        at.dim = -1;
      } else {
        at.dim = isHeads ? (rank == 3 ? 1 : 2) : 0;
      }
      return at;
    };
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (withKeys || (index != 1 && index != 2))
        factor.operands[index] = of(operand);
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      const bool isOfKeys = isa<AttentionGradOp>(op.getOperation()) && index > 0;
      if (withKeys || !isOfKeys)
        factor.results[index] = of(result);
      else
        factor.results[index].lack = FactorDim::Lack::Addend;
    }
  };
  const bool draws = op.getDropout() && op.getDropout()->convertToDouble() > 0;
  ShardingFactor batch = makeFactor(op, lse[0]);
  place(batch, /*isHeads=*/false, /*withKeys=*/true);
  if (!draws) // they count elements of all samples of a rank
    addFactor(rule, std::move(batch));
  if (op.getFirstHead())
    return rule;
  const int64_t heads = lse[1], keyHeads = shapeOf(op.getKey())[2];
  ShardingFactor groups = makeFactor(op, keyHeads);
  place(groups, /*isHeads=*/true, /*withKeys=*/true);
  groups.isOutermost = draws;
  addFactor(rule, std::move(groups));
  // Fewer key heads than ranks: each rank reads the one that its queries belong to.
  ShardingFactor queries = makeFactor(op, heads);
  place(queries, /*isHeads=*/true, /*withKeys=*/false);
  queries.isOutermost = true;
  queries.ranksMultipleOf = keyHeads;
  addFactor(rule, std::move(queries));
  return rule;
}
ShardingRule mlir::ds::ruleOf(AttentionOp op) { return attentionRule(op); }
ShardingRule mlir::ds::ruleOf(AttentionGradOp op) { return attentionRule(op); }

/// Rows of a loss, of which those of each rank make an addend. `isSum` says whether what is made of them is a
/// sum, and no mean of theirs.
static ShardingRule lossRule(Operation *op, bool isSum) {
  ShardingRule rule;
  ShardingFactor rows = makeFactor(op, shapeOf(op->getOperand(0))[0], FactorKind::Sum);
  for (auto [value, place] : llvm::zip_equal(op->getOperands(), rows.operands))
    place.dim = tensorType(value).getRank() > 0 ? 0 : -1;
  for (auto [value, place] : llvm::zip_equal(op->getResults(), rows.results))
    place.dim = tensorType(value).getRank() > 0 ? 0 : -1;
  if (isSum)
    addFactor(rule, std::move(rows));
  return rule;
}

// A mean over the rows of a rank is no addend of the mean over all.
ShardingRule mlir::ds::ruleOf(CrossEntropyOp op) { return lossRule(op, op.getDenominator() != nullptr); }
ShardingRule mlir::ds::ruleOf(CrossEntropyGradOp op) { return lossRule(op, true); }
ShardingRule mlir::ds::ruleOf(CrossEntropyWithGradOp op) {
  return lossRule(op, op.getDenominator() != nullptr);
}

ShardingRule mlir::ds::ruleOf(EmbeddingOp op) {
  ShardingRule rule;
  const int64_t last = tensorType(op.getResult()).getRank() - 1;
  for (int64_t dim = 0; dim < last; ++dim) {
    ShardingFactor ids = makeFactor(op, shapeOf(op.getIds())[dim]);
    ids.operands[1].dim = ids.results[0].dim = dim;
    addFactor(rule, std::move(ids));
  }
  ShardingFactor columns = makeFactor(op, shapeOf(op.getTable())[1]);
  columns.operands[0].dim = 1;
  columns.results[0].dim = last;
  addFactor(rule, std::move(columns));
  ShardingFactor rows = makeFactor(op, shapeOf(op.getTable())[0], FactorKind::Sum);
  rows.operands[0].dim = 0;
  rows.isOutermost = true;
  addFactor(rule, std::move(rows));
  return rule;
}

ShardingRule mlir::ds::ruleOf(EmbeddingGradOp op) {
  ShardingRule rule;
  const int64_t last = tensorType(op.getGrad()).getRank() - 1;
  const bool adds = static_cast<bool>(op.getAccumulator());
  for (int64_t dim = 0; dim < last; ++dim) {
    ShardingFactor ids = makeFactor(op, shapeOf(op.getIds())[dim], FactorKind::Sum);
    ids.operands[0].dim = ids.operands[1].dim = dim;
    if (adds)
      ids.operands[2].lack = FactorDim::Lack::Addend;
    addFactor(rule, std::move(ids));
  }
  for (int64_t dim : {int64_t(0), int64_t(1)}) {
    ShardingFactor factor = makeFactor(op, shapeOf(op.getResult())[dim]);
    factor.isOutermost = dim == 0;
    if (dim == 1)
      factor.operands[1].dim = last;
    if (adds)
      factor.operands[2].dim = dim;
    factor.results[0].dim = dim;
    addFactor(rule, std::move(factor));
  }
  return rule;
}

/// Batches, and channels that are not in groups. Windows lie across parts of other dimensions.
ShardingRule mlir::ds::ruleOf(ConvOp op) {
  ShardingRule rule;
  ShardingFactor batch = makeFactor(op, shapeOf(op.getResult())[0]);
  batch.operands[0].dim = batch.results[0].dim = 0;
  addFactor(rule, std::move(batch));
  if (op.getGroups() != 1)
    return rule;
  ShardingFactor outputs = makeFactor(op, shapeOf(op.getResult())[1]);
  outputs.operands[1].dim = 0;
  if (op.getBias())
    outputs.operands[2].dim = 0;
  outputs.results[0].dim = 1;
  addFactor(rule, std::move(outputs));
  ShardingFactor inputs = makeFactor(op, shapeOf(op.getInput())[1], FactorKind::Sum);
  inputs.operands[0].dim = inputs.operands[1].dim = 1;
  if (op.getBias())
    inputs.operands[2].lack = FactorDim::Lack::Once;
  addFactor(rule, std::move(inputs));
  return rule;
}

ShardingRule mlir::ds::ruleOf(ConvGradInputOp op) {
  ShardingRule rule;
  ShardingFactor batch = makeFactor(op, shapeOf(op.getResult())[0]);
  batch.operands[1].dim = batch.results[0].dim = 0;
  addFactor(rule, std::move(batch));
  if (op.getGroups() != 1)
    return rule;
  ShardingFactor inputs = makeFactor(op, shapeOf(op.getResult())[1]);
  inputs.operands[0].dim = inputs.results[0].dim = 1;
  addFactor(rule, std::move(inputs));
  ShardingFactor outputs = makeFactor(op, shapeOf(op.getGrad())[1], FactorKind::Sum);
  outputs.operands[0].dim = 0;
  outputs.operands[1].dim = 1;
  addFactor(rule, std::move(outputs));
  return rule;
}

ShardingRule mlir::ds::ruleOf(ConvGradWeightOp op) {
  ShardingRule rule;
  ShardingFactor batch = makeFactor(op, shapeOf(op.getGrad())[0], FactorKind::Sum);
  batch.operands[0].dim = batch.operands[1].dim = 0;
  addFactor(rule, std::move(batch));
  if (op.getGroups() != 1)
    return rule;
  ShardingFactor inputs = makeFactor(op, shapeOf(op.getResult())[1]);
  inputs.operands[0].dim = inputs.results[0].dim = 1;
  addFactor(rule, std::move(inputs));
  ShardingFactor outputs = makeFactor(op, shapeOf(op.getResult())[0]);
  outputs.operands[1].dim = 1;
  outputs.results[0].dim = 0;
  addFactor(rule, std::move(outputs));
  return rule;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

// Ranks that share sequences exchange values along their own axis; those that share layers besides can each
// exchange a part: of all dimensions but the first, along which ranks are told apart. Sums and moves of
// addends are addends.

/// Dimensions from `first` on are factors, which operand and result have.
static ShardingRule ruleFrom(Operation *op, int64_t first, bool passesAddends) {
  ShardingRule rule;
  rule.passesAddends = passesAddends;
  const ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  for (int64_t dim = first; dim < static_cast<int64_t>(shape.size()); ++dim) {
    ShardingFactor factor = makeFactor(op, shape[dim]);
    factor.operands[0].dim = factor.results[0].dim = dim;
    addFactor(rule, std::move(factor));
  }
  return rule;
}

ShardingRule mlir::ds::ruleOf(AllToAllOp op) { return ruleFrom(op, 1, true); }
ShardingRule mlir::ds::ruleOf(AllGatherOp op) { return ruleFrom(op, 1, true); }
ShardingRule mlir::ds::ruleOf(LocalShardOp op) { return ruleFrom(op, 1, true); }
ShardingRule mlir::ds::ruleOf(ReduceScatterOp op) { return ruleFrom(op, 1, op.getKind() == ReduceKind::Sum); }
ShardingRule mlir::ds::ruleOf(AllReduceOp op) { return ruleFrom(op, 0, op.getKind() == ReduceKind::Sum); }
