//===- NodeEmitter.cpp - Values of a body at the current loop position ---------===//

#include "NodeEmitter.h"
#include "NarrowFloats.h"
#include <array>

namespace mlir::ds::codegen {

Type NodeEmitter::computeType(Type type) {
  if (isNarrow(type))
    return Float32Type::get(type.getContext());
  if (auto integer = dyn_cast<IntegerType>(type); integer && !integer.isSignless())
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

Value NodeEmitter::emit(const Node *node, unsigned copy) {
  unsigned variant = isVector(node) ? copy : 0;
  if (Value known = s.lookup(node, variant))
    return known;
  assert(node->kind != Node::Kind::Reduce && "a reduction is used before its stage");
  // Operands first: their scopes are further out, and writing them must not happen inside another insertion.
  for (const Node *operand : node->operands)
    if (!rowCaches.contains(node) || rowCaches[node].firstStage == stage)
      emit(operand, copy);
  unsigned scope = position.scopeOf(node->dims, node->level);
  Value value = s.at(scope, [&] {
    auto cache = rowCaches.find(node);
    return cache == rowCaches.end() ? compute(node, copy) : throughCache(node, copy, cache->second);
  });
  s.remember(scope, node, variant, value);
  return value;
}

Value NodeEmitter::emitVector(const Node *node, unsigned copy) {
  Value value = emit(node, copy);
  if (!position.nest().vectorDim || isa<VectorType>(value.getType()))
    return value;
  if (Value known = s.lookup(node, kSplat))
    return known;
  unsigned scope = position.scopeOf(node->dims, node->level);
  Value repeated = s.at(scope, [&] {
    return node->kind == Node::Kind::Constant ? constantOf(node, true) : lanes.splat(value);
  });
  s.remember(scope, node, kSplat, repeated);
  return repeated;
}

void NodeEmitter::store(const NestOutput &output, unsigned copy) {
  bool varies = position.varies(output.address->dims);
  memory.store(output, varies ? emitVector(output.value, copy) : emit(output.value, copy), copy);
}

void NodeEmitter::storeFull(const LoopNest &piece, unsigned copy) {
  for (const NestOutput &output : piece.outputs)
    if (output.full)
      emit(output.value, copy);
  for (const NestOutput &output : piece.outputs)
    if (output.full)
      store(output, copy);
}

void NodeEmitter::define(const Node *reduction, unsigned copy, Value value) {
  if (!isVector(reduction) && isa<VectorType>(value.getType())) {
    // Every column has the same value: it does not depend on the column.
    Value zero = b.create<LLVM::ConstantOp>(s.loc, b.getI32Type(), b.getI32IntegerAttr(0));
    value = b.create<LLVM::ExtractElementOp>(s.loc, value, zero);
  }
  s.remember(s.depth(), reduction, isVector(reduction) ? copy : 0, value);
}

Value NodeEmitter::compute(const Node *node, unsigned copy) {
  switch (node->kind) {
  case Node::Kind::Load:
  case Node::Kind::Table:
    return memory.load(node, copy);
  case Node::Kind::Constant:
    return constantOf(node, false);
  case Node::Kind::Position:
    return positionOf(node, copy);
  case Node::Kind::Random:
    return random(node, copy);
  case Node::Kind::Elementwise:
    return elementwise(node, copy);
  case Node::Kind::Guard:
    return guard(node, copy);
  case Node::Kind::Reduce:
    break;
  }
  llvm_unreachable("reductions are defined by their stage");
}

Value NodeEmitter::throughCache(const Node *node, unsigned copy, const RowCache &cache) {
  Value pointer = memory.elementPointer(cache.memory, node->type, position.dim(*position.nest().vectorDim));
  if (rowBase)
    pointer = memory.elementPointer(pointer, node->type, rowBase);
  if (copy)
    pointer = memory.elementPointer(pointer, node->type, s.constant(copy * lanes.count));
  if (stage > cache.firstStage)
    return memory.loadAt(pointer, node->type, copy);
  Value value = compute(node, copy);
  memory.storeAt(pointer, node->type, value, copy);
  return value;
}

Value NodeEmitter::toCompute(Value value, Type type) {
  return isNarrow(type) ? widen(b, s.loc, value, type) : value;
}

Value NodeEmitter::fromCompute(Value value, Type type) {
  return isNarrow(type) ? narrow(b, s.loc, value, type, hasNativeBf16) : value;
}

/// What ds.convert to a 16-bit float rounds: `value` of an element of type `from`, in f32 or f64.
Value NodeEmitter::convertToNarrow(Value value, Type from) {
  if (isa<FloatType>(from))
    return value;
  Type type = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(type);
  if (from.isUnsignedInteger() || from.isInteger(1))
    return b.create<arith::UIToFPOp>(s.loc, type, value);
  return b.create<arith::SIToFPOp>(s.loc, type, value);
}

Value NodeEmitter::elementwise(const Node *node, unsigned copy) {
  bool asVector = isVector(node);
  // A choice moves bits; everything else computes on 16-bit floats in f32.
  bool isChoice = isa<ds::SelectOp>(node->op);
  SmallVector<Value> operands;
  for (const Node *operand : node->operands) {
    Value value = asVector ? emitVector(operand, copy) : emit(operand, copy);
    operands.push_back(isChoice ? value : toCompute(value, operand->type));
  }
  if (isa<ds::ConvertOp>(node->op) && isNarrow(node->type))
    return fromCompute(convertToNarrow(operands[0], node->operands[0]->type), node->type);
  Value result = cast<ds::ScalarBodyOpInterface>(node->op).buildScalar(b, s.loc, operands);
  return isChoice ? result : fromCompute(result, node->type);
}

Value NodeEmitter::constantOf(const Node *node, bool asVector) {
  Type type = isNarrow(node->type) ? b.getI16Type() : computeType(node->type);
  TypedAttr value = node->value;
  if (auto integer = dyn_cast<IntegerAttr>(value))
    value = IntegerAttr::get(type, integer.getValue());
  else if (isNarrow(node->type))
    value = IntegerAttr::get(type, cast<FloatAttr>(value).getValue().bitcastToAPInt());
  if (asVector)
    value = DenseElementsAttr::get(cast<ShapedType>(lanes.vectorOf(type)), value);
  return b.create<arith::ConstantOp>(s.loc, value);
}

Value NodeEmitter::positionOf(const Node *node, unsigned copy) {
  Value number =
      isVector(node) ? indices.vector(node->index, copy, b.getI64Type()) : indices.scalar(node->index);
  Type element = computeType(node->type);
  Type type = isVector(node) ? lanes.vectorOf(element) : element;
  if (isa<FloatType>(element))
    return fromCompute(b.create<arith::SIToFPOp>(s.loc, type, number), node->type);
  return element.isInteger(64) ? number : b.create<arith::TruncIOp>(s.loc, type, number).getResult();
}

Value NodeEmitter::guard(const Node *node, unsigned copy) {
  bool asVector = isVector(node);
  Value all;
  for (const Condition &condition : node->conditions) {
    bool vectorCondition = position.varies(condition.expr->dims);
    Value expr = vectorCondition ? indices.vector(condition.expr, copy, b.getI64Type())
                                 : indices.scalar(condition.expr);
    auto bound = [&](arith::CmpIPredicate predicate, int64_t limit) {
      Value limitValue = s.constant(limit);
      Value test = b.create<arith::CmpIOp>(s.loc, predicate, expr,
                                           vectorCondition ? lanes.splat(limitValue) : limitValue);
      if (asVector && !vectorCondition)
        test = lanes.splat(test);
      all = all ? b.create<arith::AndIOp>(s.loc, all, test).getResult() : test;
    };
    bound(arith::CmpIPredicate::sge, condition.low);
    bound(arith::CmpIPredicate::sle, condition.high);
  }
  auto operand = [&](unsigned k) {
    return asVector ? emitVector(node->operands[k], copy) : emit(node->operands[k], copy);
  };
  return b.create<arith::SelectOp>(s.loc, all, operand(0), operand(1));
}

/// Number `lane` of the four words that ten rounds of Philox 4x32 make of `counters`; `word` writes a
/// constant of their type.
static Value drawPhilox(OpBuilder &b, Location loc, std::array<Value, 4> counters, Value key0, Value key1,
                        Value lane, llvm::function_ref<Value(int64_t)> word) {
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return b.create<arith::XOrIOp>(loc, b.create<arith::XOrIOp>(loc, x, y), z);
  };
  for (int round = 0; round < 10; ++round) {
    auto even = b.create<arith::MulUIExtendedOp>(loc, counters[0], word(0xD2511F53));
    auto odd = b.create<arith::MulUIExtendedOp>(loc, counters[2], word(0xCD9E8D57));
    Value first = mix(odd.getHigh(), counters[1], key0), third = mix(even.getHigh(), counters[3], key1);
    counters = {first, odd.getLow(), third, even.getLow()};
    key0 = b.create<arith::AddIOp>(loc, key0, word(0x9E3779B9));
    key1 = b.create<arith::AddIOp>(loc, key1, word(0xBB67AE85));
  }
  Value drawn = counters[3];
  for (int k = 2; k >= 0; --k) {
    Value isThis = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, lane, word(k));
    drawn = b.create<arith::SelectOp>(loc, isThis, counters[k], drawn);
  }
  return drawn;
}

/// Which number of its draw the random `node` is.
Value NodeEmitter::drawNumber(const Node *node, unsigned copy) {
  const bool asVector = isVector(node);
  if (node->operands.size() < 3)
    return asVector ? indices.vector(node->index, copy, b.getI64Type()) : indices.scalar(node->index);
  Value first = indices.scalar(node->index);
  Value number = asVector ? emitVector(node->operands[2], copy) : emit(node->operands[2], copy);
  return b.create<arith::AddIOp>(s.loc, number, asVector ? lanes.splat(first) : first);
}

Value NodeEmitter::random(const Node *node, unsigned copy) {
  bool asVector = isVector(node);
  Location loc = s.loc;
  Type i32 = b.getI32Type(), type = asVector ? lanes.vectorOf(i32) : i32;
  auto word = [&](int64_t value) -> Value {
    TypedAttr attribute = b.getI32IntegerAttr(int32_t(uint32_t(value)));
    if (asVector)
      attribute = DenseElementsAttr::get(cast<ShapedType>(type), attribute);
    return b.create<arith::ConstantOp>(loc, attribute);
  };
  // Low and high words of an i64, in the type of the draw.
  auto halves = [&](Value wide) -> std::pair<Value, Value> {
    Type wideType = wide.getType(), narrow = isa<VectorType>(wideType) ? type : i32;
    Value shift = b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(32));
    Value high = b.create<arith::ShRUIOp>(loc, wide, isa<VectorType>(wideType) ? lanes.splat(shift) : shift);
    return {b.create<arith::TruncIOp>(loc, narrow, wide), b.create<arith::TruncIOp>(loc, narrow, high)};
  };
  auto spread = [&](Value value) {
    return asVector && !isa<VectorType>(value.getType()) ? lanes.splat(value) : value;
  };

  Value draw = drawNumber(node, copy);
  Value two = s.constant(2);
  Value block = b.create<arith::ShRUIOp>(loc, draw, asVector ? lanes.splat(two) : two);
  Value lane = b.create<arith::AndIOp>(loc, halves(draw).first, word(3));
  auto [key0, key1] = halves(emit(node->operands[0], copy));
  auto op = cast<ds::RandomUniformOp>(node->op);
  std::array<Value, 4> counters = {halves(block).first, halves(block).second, word(int64_t(op.getId())),
                                   spread(halves(emit(node->operands[1], copy)).first)};
  Value bits = drawPhilox(b, loc, counters, spread(key0), spread(key1), lane, word);
  Type f32 = b.getF32Type(), floats = asVector ? lanes.vectorOf(f32) : f32;
  Value number = b.create<arith::SIToFPOp>(loc, floats, b.create<arith::ShRUIOp>(loc, bits, word(8)));
  TypedAttr scale = b.getF32FloatAttr(0x1p-24f);
  if (asVector)
    scale = DenseElementsAttr::get(cast<ShapedType>(floats), scale);
  return b.create<arith::MulFOp>(loc, number, b.create<arith::ConstantOp>(loc, scale));
}

} // namespace mlir::ds::codegen
