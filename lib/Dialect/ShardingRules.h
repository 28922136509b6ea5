//===- ShardingRules.h - What a rank does in the place of an op ------------------===//
#ifndef DS_LIB_DIALECT_SHARDINGRULES_H
#define DS_LIB_DIALECT_SHARDINGRULES_H

#include "ds/Dialect/Emitter.h"

#include "ds/Dialect/Sharding.h"

namespace mlir::ds {

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
