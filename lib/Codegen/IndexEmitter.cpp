//===- IndexEmitter.cpp - Indices and lanes of a node --------------------------===//

#include "IndexEmitter.h"

namespace mlir::ds::codegen {

Type Lanes::vectorOf(Type element) const {
  return isa<LLVM::LLVMPointerType>(element) ? LLVM::getFixedVectorType(element, count)
                                             : VectorType::get({count}, element);
}

Value Lanes::splat(Value scalar) {
  if (auto constant = scalar.getDefiningOp<arith::ConstantOp>()) {
    auto type = cast<ShapedType>(vectorOf(scalar.getType()));
    return b.create<arith::ConstantOp>(s.loc, DenseElementsAttr::get(type, Attribute(constant.getValue())));
  }
  Type type = vectorOf(scalar.getType());
  Value undefined = b.create<LLVM::UndefOp>(s.loc, type);
  Value zero = b.create<LLVM::ConstantOp>(s.loc, b.getI32Type(), b.getI32IntegerAttr(0));
  Value one = b.create<LLVM::InsertElementOp>(s.loc, type, undefined, scalar, zero);
  return b.create<LLVM::ShuffleVectorOp>(s.loc, one, undefined, SmallVector<int32_t>(count, 0));
}

Value Lanes::numbers(Type element, int64_t step) {
  SmallVector<APInt> numbers;
  for (int64_t lane = 0; lane < count; ++lane)
    numbers.emplace_back(element.getIntOrFloatBitWidth(), lane * step, /*isSigned=*/true);
  auto type = cast<ShapedType>(vectorOf(element));
  return b.create<arith::ConstantOp>(s.loc, DenseElementsAttr::get(type, numbers));
}

Value Lanes::all() {
  auto type = cast<ShapedType>(vectorOf(b.getI1Type()));
  return b.create<arith::ConstantOp>(s.loc, DenseElementsAttr::get(type, true));
}

Value Lanes::below(Value base, unsigned copy, Value end) {
  Value room = b.create<arith::SubIOp>(s.loc, end, base);
  if (copy)
    room = b.create<arith::SubIOp>(s.loc, room, s.constant(copy * count));
  // Compared in 32 bits, one vector for 16 count; the clamp keeps distances beyond them on the right side.
  Value low = s.constant(0), high = s.constant(count);
  room = b.create<arith::MinSIOp>(s.loc, b.create<arith::MaxSIOp>(s.loc, room, low), high);
  Value narrow = b.create<arith::TruncIOp>(s.loc, b.getI32Type(), room);
  return b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::slt, numbers(b.getI32Type(), 1), splat(narrow));
}

/// First element of `copy` in the vector dimension.
Value IndexEmitter::startOf(unsigned copy) {
  if (Value placed = position.copyStart(copy))
    return placed;
  Value start = position.dim(*position.nest().vectorDim);
  return copy ? b.create<arith::AddIOp>(s.loc, start, s.constant(copy * lanes.count)).getResult() : start;
}

Value IndexEmitter::scalar(Index index) {
  if (index->isConstant())
    return s.constant(index->constant);
  if (Value known = s.lookup(index, 0))
    return known;
  unsigned scope = position.scopeOf(index->dims, 0);
  Value sum = s.at(scope, [&] {
    Value sum;
    for (const IndexTerm &term : index->terms) {
      Value value = scalarAtom(*term.atom);
      if (term.coefficient != 1)
        value = b.create<arith::MulIOp>(s.loc, value, s.constant(term.coefficient));
      sum = sum ? b.create<arith::AddIOp>(s.loc, sum, value).getResult() : value;
    }
    if (index->constant != 0)
      sum = b.create<arith::AddIOp>(s.loc, sum, s.constant(index->constant));
    return sum;
  });
  s.remember(scope, index, 0, sum);
  return sum;
}

/// Division by a constant, rounding down; remainders are of positive divisors. `bounds` tell whether a plain
/// unsigned division does.
static Value divide(OpBuilder &b, Location loc, Value x, Value divisor, bool remainder, bool mayBeNegative) {
  if (!mayBeNegative && remainder)
    return b.create<arith::RemUIOp>(loc, x, divisor);
  if (!mayBeNegative)
    return b.create<arith::DivUIOp>(loc, x, divisor);
  Value rest = b.create<arith::RemSIOp>(loc, x, divisor);
  Value zero = b.create<arith::SubIOp>(loc, x, x);
  Value negative = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, rest, zero);
  Value up = b.create<arith::AddIOp>(loc, rest, divisor);
  rest = b.create<arith::SelectOp>(loc, negative, up, rest);
  if (remainder)
    return rest;
  return b.create<arith::DivSIOp>(loc, b.create<arith::SubIOp>(loc, x, rest), divisor);
}

/// The atom's operation on the value of its inner expression.
static Value applyAtom(OpBuilder &b, Location loc, const IndexAtom &atom, Value inner, Value first,
                       Value second, bool mayBeNegative) {
  switch (atom.kind) {
  case IndexAtom::Kind::FloorDiv:
    return divide(b, loc, inner, first, false, mayBeNegative);
  case IndexAtom::Kind::Mod:
    return divide(b, loc, inner, first, true, mayBeNegative);
  case IndexAtom::Kind::Clamp:
    return b.create<arith::MinSIOp>(loc, b.create<arith::MaxSIOp>(loc, inner, first), second);
  case IndexAtom::Kind::Dim:
    break;
  }
  llvm_unreachable("dimensions have values");
}

Value IndexEmitter::scalarAtom(const IndexAtom &atom) {
  if (atom.kind == IndexAtom::Kind::Dim)
    return position.dim(atom.dim);
  Value inner = scalar(atom.inner);
  return applyAtom(b, s.loc, atom, inner, s.constant(atom.a), s.constant(atom.b),
                   position.nest().context.range(atom.inner).low < 0);
}

Value IndexEmitter::vectorAtom(const IndexAtom &atom, unsigned copy, Type element) {
  if (atom.kind == IndexAtom::Kind::Dim) {
    Value start = startOf(copy);
    if (element != start.getType())
      start = b.create<arith::TruncIOp>(s.loc, element, start);
    return b.create<arith::AddIOp>(s.loc, lanes.splat(start), lanes.numbers(element, 1));
  }
  auto number = [&](int64_t value) {
    return lanes.splat(b.create<arith::ConstantOp>(s.loc, b.getIntegerAttr(element, value)));
  };
  Value inner = vector(atom.inner, copy, element);
  return applyAtom(b, s.loc, atom, inner, number(atom.a), number(atom.b),
                   position.nest().context.range(atom.inner).low < 0);
}

Value IndexEmitter::vector(Index index, unsigned copy, Type element) {
  unsigned v = *position.nest().vectorDim, variant = copy + (element.isInteger(32) ? kNarrowLanes : kSplat);
  if (Value known = s.lookup(index, variant))
    return known;
  unsigned scope = position.scopeOf(index->dims, 0);
  Value sum = s.at(scope, [&] {
    Value sum;
    IndexSum rest;
    auto accumulate = [&](Value value) {
      sum = sum ? b.create<arith::AddIOp>(s.loc, sum, value).getResult() : value;
    };
    Value uniform;
    for (const IndexTerm &term : index->terms) {
      bool varies =
          term.atom->kind == IndexAtom::Kind::Dim ? term.atom->dim == v : (term.atom->inner->dims >> v) & 1;
      Value value = varies ? vectorAtom(*term.atom, copy, element) : scalarAtom(*term.atom);
      Value factor =
          varies
              ? lanes.splat(b.create<arith::ConstantOp>(s.loc, b.getIntegerAttr(element, term.coefficient)))
              : s.constant(term.coefficient);
      if (term.coefficient != 1)
        value = b.create<arith::MulIOp>(s.loc, value, factor);
      if (varies)
        accumulate(value);
      else
        uniform = uniform ? b.create<arith::AddIOp>(s.loc, uniform, value).getResult() : value;
    }
    if (index->constant != 0)
      uniform = uniform ? b.create<arith::AddIOp>(s.loc, uniform, s.constant(index->constant)).getResult()
                        : s.constant(index->constant);
    if (uniform) {
      if (!element.isInteger(64))
        uniform = b.create<arith::TruncIOp>(s.loc, element, uniform);
      accumulate(lanes.splat(uniform));
    }
    return sum;
  });
  s.remember(scope, index, variant, sum);
  return sum;
}

} // namespace mlir::ds::codegen
