//===- MathExpansion.cpp - Functions of f32 in a few instructions --------------===//
//
// Polynomials fitted by the Remez exchange for the relative error, in 50 digits, and rounded to f32.
// Conversions between floats and integers go through the bits of a shifted number: fptosi of NaN would be
// poison.
//
//===---------------------------------------------------------------------------===//

#include "MathExpansion.h"
#include "SpreadMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

namespace mlir::ds::codegen {
namespace {

/// Arithmetic on values of one shape, with numbers spread over it.
struct FloatMath : SpreadArithmetic {
  bool hasFma;

  Value i(int32_t value) const { return spread(b.getI32IntegerAttr(value)); }

  Value fma(Value x, Value y, Value z) const {
    if (hasFma)
      return b.create<math::FmaOp>(loc, x, y, z);
    return add(mul(x, y), z);
  }
  Value copySign(Value x, Value sign) const { return b.create<math::CopySignOp>(loc, x, sign); }
  Value bitsOf(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getI32Type()), x); }
  Value ofBits(Value x) const { return b.create<arith::BitcastOp>(loc, typeOf(b.getF32Type()), x); }
  Value andI(Value x, int32_t mask) const { return b.create<arith::AndIOp>(loc, x, i(mask)); }
  Value shl(Value x, int32_t bits) const { return b.create<arith::ShLIOp>(loc, x, i(bits)); }
  Value ashr(Value x, int32_t bits) const { return b.create<arith::ShRSIOp>(loc, x, i(bits)); }

  /// c[0] + x * (c[1] + x * ...).
  Value polynomial(Value x, ArrayRef<float> c) const {
    Value sum = f(c.back());
    for (float coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, f(coefficient));
    return sum;
  }
  /// 2^n for the integer n, -126 <= n <= 127.
  Value powerOfTwo(Value n) const { return ofBits(shl(addI(n, i(127)), 23)); }

  struct Exponential {
    Value n, minusOne; ///< e^x = 2^n * (1 + minusOne)
  };
  Exponential splitExp(Value x) const;
  Value exp(Value x) const;
  Value log(Value x) const;
  Value tanh(Value x) const;
  Value erf(Value x) const;
  Value sinOrCos(Value x, int quarter) const;
};

constexpr float kLn2High = 0x1.62ep-1f; // 12 zero bits: n * kLn2High is exact
constexpr float kLn2Low = 0x1.0bfbe8p-15f;

/// x = n ln 2 + r with |r| <= ln 2 / 2; for |x| < 2^20.
FloatMath::Exponential FloatMath::splitExp(Value x) const {
  Value shift = f(0x1.8p23f);
  Value shifted = fma(x, f(0x1.715476p0f), shift);
  Value n = sub(shifted, shift);
  Value r = fma(n, f(-kLn2Low), fma(n, f(-kLn2High), x));
  Value q = polynomial(r, {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a2352p-10f});
  return {subI(bitsOf(shifted), bitsOf(shift)), fma(mul(r, r), q, r)};
}

Value FloatMath::exp(Value x) const {
  // Beyond these bounds the result is 0 or infinity. NaN passes both tests.
  x = select(cmp(Cmp::OGT, x, f(89)), f(89), x);
  x = select(cmp(Cmp::OLT, x, f(-104)), f(-104), x);
  Exponential e = splitExp(x);
  // In two factors, for n reaches 128 and, in denormals, -150.
  Value half = ashr(e.n, 1);
  Value scaled = mul(add(e.minusOne, f(1)), powerOfTwo(half));
  return mul(scaled, powerOfTwo(subI(e.n, half)));
}

Value FloatMath::log(Value x) const {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Value tiny = cmp(Cmp::OLT, x, f(0x1p-126f));
  Value bits = bitsOf(select(tiny, mul(x, f(0x1p25f)), x));
  // x = 2^e (1 + m) with 1 + m in [sqrt(1/2), sqrt(2)).
  Value e = ashr(subI(bits, i(0x3f3504f3)), 23);
  Value m = sub(ofBits(subI(bits, shl(e, 23))), f(1));
  e = subI(e, select(tiny, i(25), i(0)));
  Value n = b.create<arith::SIToFPOp>(loc, typeOf(b.getF32Type()), e);
  Value square = mul(m, m);
  Value p = polynomial(m, {0x1.555546p-2f, -0x1.ffffeep-3f, 0x1.99a55p-3f, -0x1.5562fp-3f, 0x1.2331e4p-3f,
                           -0x1.fb4042p-4f, 0x1.e65b7ap-4f, -0x1.e30044p-4f, 0x1.1b4466p-4f});
  Value tail = fma(square, f(-0.5f), fma(n, f(kLn2Low), mul(mul(square, m), p)));
  Value result = fma(n, f(kLn2High), add(m, tail));
  Value zero = f(0), bad = f(std::numeric_limits<float>::quiet_NaN());
  Value edge = select(cmp(Cmp::OEQ, x, zero), f(-kInfinity), bad);
  result = select(cmp(Cmp::OGT, x, zero), result, edge);
  return select(cmp(Cmp::OEQ, x, f(kInfinity)), x, result);
}

/// (e^2|x| - 1) / (e^2|x| + 1), with e^2|x| - 1 formed without cancellation.
Value FloatMath::tanh(Value x) const {
  Value twice = abs(add(x, x));
  twice = select(cmp(Cmp::OGT, twice, f(20)), f(20), twice); // tanh(10) rounds to 1
  Exponential e = splitExp(twice);
  Value scale = powerOfTwo(e.n);
  Value minusOne = fma(scale, e.minusOne, sub(scale, f(1)));
  return copySign(div(minusOne, add(minusOne, f(2))), x);
}

/// An odd polynomial up to 1, and 1 - exp(-p(|x|)) beyond, where p fits -log(erfc).
Value FloatMath::erf(Value x) const {
  Value magnitude = abs(x);
  Value near = polynomial(mul(x, x), {0x1.06eba8p-3f, -0x1.812746p-2f, 0x1.ce2f0ap-4f, -0x1.b829d8p-6f,
                                      0x1.562b1ap-8f, -0x1.bcd7ep-11f, 0x1.d8b89p-14f, -0x1.44cfc4p-17f});
  near = fma(x, near, x);
  Value t = select(cmp(Cmp::OGT, magnitude, f(4.1f)), f(4.1f), magnitude);
  Value p = polynomial(t, {-0x1.8a572ap-13f, 0x1.212c0cp+0f, 0x1.443566p-1f, 0x1.bc1516p-4f, -0x1.9d0302p-6f,
                           0x1.138cbap-8f, -0x1.cec5f8p-12f, 0x1.6bd7dap-16f});
  Value far = copySign(sub(f(1), exp(neg(p))), x);
  return select(cmp(Cmp::OGT, magnitude, f(1)), far, near);
}

/// sin(x + quarter * pi / 2). The argument is reduced in f64: angles of thousands of radians keep their
/// digits.
Value FloatMath::sinOrCos(Value x, int quarter) const {
  Type f64 = typeOf(b.getF64Type()), i64 = typeOf(b.getI64Type());
  Value wide = b.create<arith::ExtFOp>(loc, f64, x);
  Value shift = d(0x1.8p52);
  Value shifted = fma(wide, d(0x1.45f306dc9c883p-1), shift);
  Value n = sub(shifted, shift);
  Value reduced = fma(n, d(-0x1.1a62633145c07p-54), fma(n, d(-0x1.921fb54442d18p+0), wide));
  Value r = b.create<arith::TruncFOp>(loc, typeOf(b.getF32Type()), reduced);
  Value bits = b.create<arith::BitcastOp>(loc, i64, shifted);
  Value q = addI(b.create<arith::TruncIOp>(loc, typeOf(b.getI32Type()), bits), i(quarter));
  Value z = mul(r, r);
  Value sine = polynomial(z, {-0x1.555556p-3f, 0x1.11110ep-7f, -0x1.a013a2p-13f, 0x1.6dbc32p-19f});
  sine = copySign(fma(mul(r, z), sine, r), r); // the sign is for -0 alone
  Value cosine = polynomial(z, {0x1.555556p-5f, -0x1.6c16cp-10f, 0x1.a015cp-16f, -0x1.25230ep-22f});
  cosine = fma(mul(z, z), cosine, fma(z, f(-0.5f), f(1)));
  Value odd = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, andI(q, 1), i(0));
  Value result = select(odd, cosine, sine);
  Value sign = shl(andI(q, 2), 30);
  return ofBits(b.create<arith::XOrIOp>(loc, bitsOf(result), sign));
}

/// Calls `name` of libm for every lane.
Value callLibm(OpBuilder &b, ModuleOp module, Operation *op, StringRef name) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  SmallVector<Type> arguments(op->getNumOperands(), element);
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    b.create<LLVM::LLVMFuncOp>(module.getLoc(), name, LLVM::LLVMFunctionType::get(element, arguments));
  }
  Location loc = op->getLoc();
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  if (!vector)
    return b.create<LLVM::CallOp>(loc, TypeRange{element}, name, op->getOperands()).getResult();
  Value result = b.create<LLVM::UndefOp>(loc, vector);
  for (int32_t lane = 0; lane < vector.getDimSize(0); ++lane) {
    Value number = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), b.getI32IntegerAttr(lane));
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(b.create<LLVM::ExtractElementOp>(loc, operand, number));
    Value value = b.create<LLVM::CallOp>(loc, TypeRange{element}, name, operands).getResult();
    result = b.create<LLVM::InsertElementOp>(loc, vector, result, value, number);
  }
  return result;
}

/// The f32 form of `op`, or null where there is none.
Value expand(Operation *op, const FloatMath &m) {
  Value x = op->getOperand(0);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return m.exp(x); })
      .Case([&](math::LogOp) { return m.log(x); })
      .Case([&](math::TanhOp) { return m.tanh(x); })
      .Case([&](math::ErfOp) { return m.erf(x); })
      .Case([&](math::SinOp) { return m.sinOrCos(x, 0); })
      .Case([&](math::CosOp) { return m.sinOrCos(x, 1); })
      .Default([](Operation *) { return Value(); });
}

/// libm's name of `op` for f64, or empty.
StringRef libmName(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](math::ExpOp) { return "exp"; })
      .Case([](math::LogOp) { return "log"; })
      .Case([](math::TanhOp) { return "tanh"; })
      .Case([](math::ErfOp) { return "erf"; })
      .Case([](math::SinOp) { return "sin"; })
      .Case([](math::CosOp) { return "cos"; })
      .Case([](math::PowFOp) { return "pow"; })
      .Default([](Operation *) { return ""; });
}

} // namespace

void expandMath(ModuleOp module, bool hasFma) {
  SmallVector<Operation *> work;
  module.walk([&](Operation *op) {
    if (!libmName(op).empty())
      work.push_back(op);
  });
  for (Operation *op : work) {
    OpBuilder b(op);
    Type type = op->getResult(0).getType();
    bool isSingle = getElementTypeOrSelf(type).isF32();
    Value value = isSingle ? expand(op, FloatMath{{b, op->getLoc(), type}, hasFma}) : Value();
    if (!value)
      value = callLibm(b, module, op, isSingle ? (libmName(op) + "f").str() : libmName(op).str());
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }
}

} // namespace mlir::ds::codegen
