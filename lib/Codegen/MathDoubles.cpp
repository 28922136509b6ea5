//===- MathDoubles.cpp - Functions of f64 in straight code ---------------------===//
//
// For processors that have no libm to call. Schedules and bias corrections need a handful of them a step, so
// they are written for accuracy and not for speed: logarithms come in two words, which keeps the digits of a
// power.
//
//===---------------------------------------------------------------------------===//

#include "MathExpansion.h"
#include "SpreadMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

namespace mlir::ds::codegen {
namespace {

using Cmp = arith::CmpFPredicate;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2High = 0x1.62e42fefa38p-1; // 11 zero bits: n * kLn2High is exact
constexpr double kLn2Low = 0x1.ef35793c7673p-45;

/// Arithmetic on values of one shape, with numbers spread over it.
struct DoubleMath : SpreadArithmetic {
  Value i(int64_t value) const { return spread(b.getI64IntegerAttr(value)); }
  Value fma(Value x, Value y, Value z) const { return b.create<math::FmaOp>(loc, x, y, z); }
  Value both(Value x, Value y) const { return b.create<arith::AndIOp>(loc, x, y); }
  Value bitsOf(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getI64Type()), x); }
  Value ofBits(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getF64Type()), x); }
  Value polynomial(Value x, ArrayRef<double> c) const {
    Value sum = d(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, d(coefficient));
    return sum;
  }

  /// A number as the sum of two.
  struct Pair {
    Value high, low;
  };
  Pair twoSum(Value x, Value y) const {
    Value sum = add(x, y), part = sub(sum, x);
    return {sum, add(sub(x, sub(sum, part)), sub(y, part))};
  }
  Pair logPair(Value x) const;
  Value expPair(Pair x) const;
  Value powerOfTwo(Value n) const { return ofBits(b.create<arith::ShLIOp>(loc, addI(n, i(1023)), i(52))); }
  Value exp(Value x) const { return expPair({x, d(0)}); }
  Value log(Value x) const;
  Value pow(Value x, Value y) const;
  Value sinOrCos(Value x, int quarter) const;
};

/// log of a positive, finite x = 2^n m with m in [sqrt(1/2), sqrt(2)): log m = 2 artanh((m - 1) / (m + 1)).
DoubleMath::Pair DoubleMath::logPair(Value x) const {
  Value tiny = cmp(Cmp::OLT, x, d(0x1p-1022));
  Value bits = bitsOf(select(tiny, mul(x, d(0x1p54)), x));
  Value n = b.create<arith::ShRSIOp>(loc, subI(bits, i(0x3fe6a09e667f3bcd)), i(52));
  Value m = ofBits(subI(bits, b.create<arith::ShLIOp>(loc, n, i(52))));
  n = subI(n, select(tiny, i(54), i(0)));
  Value count = b.create<arith::SIToFPOp>(loc, typeOf(b.getF64Type()), n);
  Value f = sub(m, d(1)), sum = add(m, d(1)), lost = sub(f, sub(sum, d(2)));
  Value s = div(f, sum);
  Value low = div(fma(neg(s), lost, fma(neg(s), sum, f)), sum);
  Value z = mul(s, s);
  SmallVector<double> series;
  for (int k = 0; k < 12; ++k)
    series.push_back(2.0 / (2 * k + 3));
  Value tail = mul(mul(s, z), polynomial(z, series));
  Pair high = twoSum(mul(count, d(kLn2High)), add(s, s));
  Value rest = add(high.low, add(fma(count, d(kLn2Low), add(low, low)), tail));
  return twoSum(high.high, rest);
}

/// e^(high + low) = 2^n e^r with |r| <= ln 2 / 2.
Value DoubleMath::expPair(Pair x) const {
  Value high = select(cmp(Cmp::OGT, x.high, d(710)), d(710), x.high);
  high = select(cmp(Cmp::OLT, high, d(-746)), d(-746), high);
  Value shift = d(0x1.8p52), shifted = fma(high, d(0x1.71547652b82fep0), shift), n = sub(shifted, shift);
  Value r = add(fma(n, d(-kLn2Low), fma(n, d(-kLn2High), high)), x.low);
  SmallVector<double> series;
  double factorial = 1;
  for (int k = 2; k <= 13; ++k)
    series.push_back(1 / (factorial *= k));
  Value result = add(fma(mul(r, r), polynomial(r, series), r), d(1));
  // In two factors, for n reaches 1025 and, in denormals, -1076.
  Value whole = subI(bitsOf(shifted), bitsOf(shift)), half = b.create<arith::ShRSIOp>(loc, whole, i(1));
  return mul(mul(result, powerOfTwo(half)), powerOfTwo(subI(whole, half)));
}

Value DoubleMath::log(Value x) const {
  Pair pair = logPair(x);
  Value edge = select(cmp(Cmp::OEQ, x, d(0)), d(-kInfinity), d(std::numeric_limits<double>::quiet_NaN()));
  Value result = select(cmp(Cmp::OGT, x, d(0)), pair.high, edge);
  return select(cmp(Cmp::OEQ, x, d(kInfinity)), x, result);
}

/// e^(y log |x|), and then everything that C says of signs, infinities and NaN.
Value DoubleMath::pow(Value x, Value y) const {
  Value magnitude = abs(x);
  Pair logarithm = logPair(magnitude);
  Value isOrdinary = both(cmp(Cmp::OGT, magnitude, d(0)), cmp(Cmp::OLT, magnitude, d(kInfinity)));
  Value edge = select(cmp(Cmp::OEQ, magnitude, d(0)), d(-kInfinity), magnitude);
  Value high = select(isOrdinary, logarithm.high, edge);
  Value product = mul(y, high), lost = fma(y, logarithm.low, fma(y, high, neg(product)));
  Value isFinite = cmp(Cmp::OLT, abs(product), d(kInfinity));
  Value result = expPair({product, select(isFinite, lost, d(0))});

  auto isWhole = [&](Value v) { return cmp(Cmp::OEQ, b.create<math::FloorOp>(loc, v), v); };
  Value yIsWhole = isWhole(y);
  Value isEven = b.create<arith::OrIOp>(loc, isWhole(mul(y, d(0.5))), cmp(Cmp::UGE, abs(y), d(0x1p53)));
  Value isOdd = select(isEven, spread(b.getIntegerAttr(b.getI1Type(), 0)), yIsWhole);
  Value isNegative = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, bitsOf(x), i(0));
  result = select(both(isNegative, isOdd), neg(result), result);
  Value isRoot = both(cmp(Cmp::OLT, x, d(0)), cmp(Cmp::OGT, x, d(-kInfinity)));
  isRoot = select(yIsWhole, spread(b.getIntegerAttr(b.getI1Type(), 0)), isRoot);
  result = select(isRoot, d(std::numeric_limits<double>::quiet_NaN()), result);
  Value isOne = b.create<arith::OrIOp>(
      loc, cmp(Cmp::OEQ, y, d(0)),
      b.create<arith::OrIOp>(loc, cmp(Cmp::OEQ, x, d(1)),
                             both(cmp(Cmp::OEQ, x, d(-1)), cmp(Cmp::OEQ, abs(y), d(kInfinity)))));
  return select(isOne, d(1), result);
}

/// sin(x + quarter * pi / 2), with pi / 2 in three words.
Value DoubleMath::sinOrCos(Value x, int quarter) const {
  Value shift = d(0x1.8p52), shifted = fma(x, d(0x1.45f306dc9c883p-1), shift), n = sub(shifted, shift);
  Value r = fma(n, d(-0x1.921fb54442d18p0), x);
  r = fma(n, d(-0x1.1a62633145c07p-54), r);
  r = fma(n, d(0x1.f1976b7ed8fbcp-110), r);
  Value q = addI(subI(bitsOf(shifted), bitsOf(shift)), i(quarter)), z = mul(r, r);
  SmallVector<double> sines, cosines;
  double factorial = 1;
  for (int k = 2; k <= 19; ++k) {
    factorial *= k;
    (k % 2 ? sines : cosines).push_back((k / 2 % 2 ? -1 : 1) / factorial);
  }
  Value sine = fma(mul(r, z), polynomial(z, sines), r);
  sine = b.create<math::CopySignOp>(loc, sine, r); // for -0 alone
  Value cosine = fma(z, polynomial(z, cosines), d(1));
  auto bit = [&](int64_t mask) {
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, b.create<arith::AndIOp>(loc, q, i(mask)),
                                   i(0));
  };
  Value result = select(bit(1), cosine, sine);
  return select(bit(2), neg(result), result);
}

/// The straight form of `op` on operands of f64, or null where there is none.
Value expand(Operation *op, const DoubleMath &m, ValueRange x) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return m.exp(x[0]); })
      .Case([&](math::LogOp) { return m.log(x[0]); })
      .Case([&](math::PowFOp) { return m.pow(x[0], x[1]); })
      .Case([&](math::SinOp) { return m.sinOrCos(x[0], 0); })
      .Case([&](math::CosOp) { return m.sinOrCos(x[0], 1); })
      .Default([](Operation *) { return Value(); });
}

} // namespace

void expandDoubles(ModuleOp module) {
  SmallVector<Operation *> work;
  module.walk([&](Operation *op) {
    if (!isa<math::ExpOp, math::LogOp, math::PowFOp, math::SinOp, math::CosOp>(op))
      return;
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (element.isF64() || (element.isF32() && isa<math::PowFOp>(op)))
      work.push_back(op);
  });
  for (Operation *op : work) {
    OpBuilder b(op);
    Type type = op->getResult(0).getType();
    DoubleMath m{{b, op->getLoc(), type}};
    Type wide = m.typeOf(b.getF64Type());
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (operand.getType() != wide)
        operand = b.create<arith::ExtFOp>(op->getLoc(), wide, operand);
    Value value = expand(op, m, operands);
    if (type != wide)
      value = b.create<arith::TruncFOp>(op->getLoc(), type, value);
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
}

} // namespace mlir::ds::codegen
