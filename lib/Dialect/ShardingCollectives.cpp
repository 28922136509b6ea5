//===- ShardingCollectives.cpp - Along which numbers exchanges can be cut -------===//
//
// The part of the table in Sharding.cpp that is of collectives. Ranks that share sequences exchange values
// along their own axis; those that share layers besides can each exchange a part: of all dimensions but the
// first, along which ranks are told apart. Sums and moves of addends are addends.
//
//===---------------------------------------------------------------------------===//
#include "ShardingRules.h"

using namespace mlir;
using namespace mlir::ds;

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
