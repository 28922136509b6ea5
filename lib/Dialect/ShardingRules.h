//===- ShardingRules.h - What a rank does in the place of an op ------------------===//
#ifndef DS_LIB_DIALECT_SHARDINGRULES_H
#define DS_LIB_DIALECT_SHARDINGRULES_H

#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/Emitter.h"

#include "ds/Dialect/Sharding.h"

namespace mlir::ds {

/// A factor that no dimension has yet.
inline ShardingFactor makeFactor(Operation *op, int64_t size, FactorKind kind = FactorKind::Parallel) {
  ShardingFactor factor;
  factor.kind = kind;
  factor.size = size;
  factor.operands.resize(op->getNumOperands());
  factor.results.resize(op->getNumResults());
  return factor;
}

inline ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

/// Numbers of which none is a factor of more than one part are none.
inline void addFactor(ShardingRule &rule, ShardingFactor factor) {
  if (factor.size > 1)
    rule.factors.push_back(std::move(factor));
}

// The rules of layers.
ShardingRule ruleOf(MatmulOp op);
ShardingRule ruleOf(AttentionOp op);
ShardingRule ruleOf(AttentionGradOp op);
ShardingRule ruleOf(CrossEntropyOp op);
ShardingRule ruleOf(CrossEntropyGradOp op);
ShardingRule ruleOf(CrossEntropyWithGradOp op);
ShardingRule ruleOf(EmbeddingOp op);
ShardingRule ruleOf(EmbeddingGradOp op);
ShardingRule ruleOf(ConvOp op);
ShardingRule ruleOf(ConvGradInputOp op);
ShardingRule ruleOf(ConvGradWeightOp op);

// The rules of exchanges along other axes.
ShardingRule ruleOf(AllToAllOp op);
ShardingRule ruleOf(AllGatherOp op);
ShardingRule ruleOf(LocalShardOp op);
ShardingRule ruleOf(ReduceScatterOp op);
ShardingRule ruleOf(AllReduceOp op);

/// The op itself on what a rank has, which is all there is to most. Of products, biases that ranks would add
/// more than once are read by one of them.
SmallVector<Value> localizePlainly(Operation *op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                   const LocalPart &part);

inline SmallVector<Value> localizeOp(Operation *op, OpBuilder &builder, ValueRange operands, TypeRange types,
                                     const LocalPart &part) {
  return localizePlainly(op, builder, operands, types, part);
}
SmallVector<Value> localizeOp(ConstantOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(IotaOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(RandomUniformOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(SliceOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(PadOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(ReduceOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(AttentionOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(AttentionGradOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(EmbeddingOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);
SmallVector<Value> localizeOp(EmbeddingGradOp op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part);

} // namespace mlir::ds

#endif // DS_LIB_DIALECT_SHARDINGRULES_H
