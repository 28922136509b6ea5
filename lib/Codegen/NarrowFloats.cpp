//===- NarrowFloats.cpp - 16-bit floats as bits, and as f32 --------------------===//

#include "NarrowFloats.h"
#include "SpreadMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::ds::codegen {
namespace {

/// Integer arithmetic on values of one shape, with numbers spread over it.
struct BitMath : SpreadMath {
  Value i(uint32_t value) const { return spread(b.getI32IntegerAttr(int32_t(value))); }
  Value add(Value x, Value y) const { return b.create<arith::AddIOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.create<arith::SubIOp>(loc, x, y); }
  Value andI(Value x, uint32_t mask) const { return b.create<arith::AndIOp>(loc, x, i(mask)); }
  Value orI(Value x, Value y) const { return b.create<arith::OrIOp>(loc, x, y); }
  Value shl(Value x, uint32_t bits) const { return b.create<arith::ShLIOp>(loc, x, i(bits)); }
  Value shr(Value x, uint32_t bits) const { return b.create<arith::ShRUIOp>(loc, x, i(bits)); }
  Value bitsOf(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getI32Type()), x); }
  Value ofBits(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getF32Type()), x); }
  Value toWord(Value x) const { return b.create<arith::ExtUIOp>(loc, typeOf(b.getI32Type()), x); }
  Value toShort(Value x) const { return b.create<arith::TruncIOp>(loc, typeOf(b.getI16Type()), x); }
  Value select(Value c, Value x, Value y) const { return b.create<arith::SelectOp>(loc, c, x, y); }
  Value isAtLeast(Value x, uint32_t bound) const {
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, x, i(bound));
  }
  Value isNaN(Value x) const { return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x); }

  Value bf16FromSingle(Value x) const;
  Value halfFromSingle(Value x) const;
  Value singleFromHalf(Value bits) const;
  Value oddSingle(Value x) const;
};

/// The upper 16 bits after adding what carries into them when the lower half is above, or at an odd, middle.
Value BitMath::bf16FromSingle(Value x) const {
  Value bits = bitsOf(x), upper = shr(bits, 16);
  Value rounded = shr(add(add(bits, i(0x7fff)), andI(upper, 1)), 16);
  return toShort(select(isNaN(x), orI(upper, i(0x40)), rounded));
}

/// What vcvtps2ph gives. Below the least normal f16, adding 0.5 leaves the rounded mantissa in the low bits;
/// above, the exponent is rebiased in place and rounding carries into it, up to infinity.
Value BitMath::halfFromSingle(Value x) const {
  Value bits = bitsOf(x), magnitude = andI(bits, 0x7fffffff), sign = andI(shr(bits, 16), 0x8000);
  Value odd = andI(shr(magnitude, 13), 1);
  Value normal = shr(add(add(magnitude, i(0xc8000fff)), odd), 13); // (15 - 127) << 23, + half a step - 1
  Value shifted = b.create<arith::AddFOp>(loc, ofBits(magnitude), f(0.5f));
  Value denormal = sub(bitsOf(shifted), i(0x3f000000));
  Value result = select(isAtLeast(magnitude, 0x38800000), normal, denormal);
  result = select(isAtLeast(magnitude, 0x477ff000), i(0x7c00), result); // 65520 and above
  Value quiet = orI(andI(shr(magnitude, 13), 0x3ff), i(0x7e00));
  result = select(isNaN(x), quiet, result);
  return toShort(orI(result, sign));
}

/// Exact: the exponent is rebiased in place; denormals come from an integer times 2^-24.
Value BitMath::singleFromHalf(Value half) const {
  Value bits = toWord(half), magnitude = andI(bits, 0x7fff), sign = shl(andI(bits, 0x8000), 16);
  Value normal = add(shl(magnitude, 13), i(0x38000000));                                // (127 - 15) << 23
  Value special = orI(shl(magnitude, 13), i(0x7f800000));                               // infinity
  special = select(isAtLeast(magnitude, 0x7c01), orI(special, i(0x00400000)), special); // a quiet NaN
  Value number = b.create<arith::SIToFPOp>(loc, typeOf(b.getF32Type()), magnitude);
  Value denormal = bitsOf(b.create<arith::MulFOp>(loc, number, f(0x1p-24f)));
  Value result = select(isAtLeast(magnitude, 0x0400), normal, denormal);
  result = select(isAtLeast(magnitude, 0x7c00), special, result);
  return ofBits(orI(result, sign));
}

/// x (f64) rounded to f32 so that a second rounding gives what one alone would: an inexact result gets an odd
/// last bit, which is the lost digits' mark.
Value BitMath::oddSingle(Value x) const {
  Value single = b.create<arith::TruncFOp>(loc, typeOf(b.getF32Type()), x);
  Value back = b.create<arith::ExtFOp>(loc, x.getType(), single);
  auto compare = [&](arith::CmpFPredicate predicate, Value p, Value q) {
    return b.create<arith::CmpFOp>(loc, predicate, b.create<math::AbsFOp>(loc, p),
                                   b.create<math::AbsFOp>(loc, q));
  };
  Value bits = bitsOf(single);
  Value down = select(compare(arith::CmpFPredicate::OGT, back, x), sub(bits, i(1)), bits);
  Value inexact = compare(arith::CmpFPredicate::ONE, back, x);
  return ofBits(select(inexact, orI(down, i(1)), bits));
}

} // namespace

bool isNarrow(Type element) { return element.isF16() || element.isBF16(); }

Value widen(OpBuilder &b, Location loc, Value bits, Type element) {
  BitMath m{{b, loc, bits.getType()}};
  if (element.isBF16())
    return m.ofBits(m.shl(m.toWord(bits), 16));
  Value half = b.create<arith::BitcastOp>(loc, m.typeOf(element), bits);
  return b.create<arith::ExtFOp>(loc, m.typeOf(b.getF32Type()), half);
}

Value narrow(OpBuilder &b, Location loc, Value value, Type element, bool nativeBf16) {
  BitMath m{{b, loc, value.getType()}};
  if (getElementTypeOrSelf(value).isF64())
    value = m.oddSingle(value);
  if (element.isBF16() && !nativeBf16)
    return m.bf16FromSingle(value);
  Value half = b.create<arith::TruncFOp>(loc, m.typeOf(element), value);
  return b.create<arith::BitcastOp>(loc, m.typeOf(b.getI16Type()), half);
}

void expandHalf(ModuleOp module) {
  SmallVector<Operation *> work;
  module.walk([&](Operation *op) {
    if ((isa<arith::ExtFOp>(op) && getElementTypeOrSelf(op->getOperand(0)).isF16()) ||
        (isa<arith::TruncFOp>(op) && getElementTypeOrSelf(op->getResult(0)).isF16()))
      work.push_back(op);
  });
  for (Operation *op : work) {
    OpBuilder b(op);
    BitMath m{{b, op->getLoc(), op->getResult(0).getType()}};
    // The bits are on the other side of a bitcast, as widen() and narrow() wrote it.
    if (isa<arith::ExtFOp>(op)) {
      auto bitcast = op->getOperand(0).getDefiningOp<arith::BitcastOp>();
      op->getResult(0).replaceAllUsesWith(m.singleFromHalf(bitcast.getIn()));
      op->erase();
      if (bitcast.use_empty())
        bitcast.erase();
    } else {
      auto bitcast = cast<arith::BitcastOp>(*op->getUsers().begin());
      bitcast.getResult().replaceAllUsesWith(m.halfFromSingle(op->getOperand(0)));
      bitcast.erase();
      op->erase();
    }
  }
}

} // namespace mlir::ds::codegen
