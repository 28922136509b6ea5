//===- RaiseGelu.cpp - Spelled-out GELU becomes one op -----------------------------===//
//
// Models write the tanh form by hand in several ways, which all are a product of x, constants and 1 + tanh of
// another product. So products are compared as a constant and a list of factors.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

namespace mlir::ds {
#define GEN_PASS_DEF_RAISEGELU
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
/// constant * factors[0] * factors[1] * ...
struct Factors {
  double constant = 1;
  SmallVector<Value> factors;

  /// Whether it is `wanted`, to within what f32 keeps of a constant, times `count` times x.
  bool isPower(Value x, size_t count, double wanted) const {
    return factors.size() == count && llvm::all_of(factors, [&](Value factor) { return factor == x; }) &&
           std::abs(constant - wanted) <= 1e-6 * wanted;
  }
};
} // namespace

/// The factors of `value`; x is one, whatever makes it. Of a product of more than any form of GELU has, some
/// are products: a power of x may be one of 2^n.
static Factors factorsOf(Value value, Value x) {
  constexpr size_t kMostFactors = 8;
  Factors all;
  SmallVector<Value> pending = {value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    auto product = next.getDefiningOp<MulOp>();
    if (std::optional<double> constant = getSplatValue(next))
      all.constant *= *constant;
    else if (product && next != x && all.factors.size() + pending.size() < kMostFactors)
      pending.append({product.getRhs(), product.getLhs()});
    else
      all.factors.push_back(next);
  }
  return all;
}

/// The other operand of an addition of `constant`; null where `value` is none.
static Value addedTo(Value value, double constant) {
  auto sum = value.getDefiningOp<AddOp>();
  if (sum && getSplatValue(sum.getRhs()) == constant)
    return sum.getLhs();
  return sum && getSplatValue(sum.getLhs()) == constant ? sum.getRhs() : Value();
}

/// Whether `value` is sqrt(2 / pi) * (x + 0.044715 x^3), or sqrt(2 / pi) * x * (1 + 0.044715 x^2).
static bool isTanhArgument(Value value, Value x) {
  constexpr double kCube = 0.044715, kSlope = M_SQRT2 * M_2_SQRTPI / 2; // sqrt(2 / pi)
  Factors factors = factorsOf(value, x);
  auto found = llvm::find_if(factors.factors, [](Value factor) { return factor.getDefiningOp<AddOp>(); });
  if (found == factors.factors.end() || *found == x)
    return false;
  auto sum = found->getDefiningOp<AddOp>();
  factors.factors.erase(found);
  if (Value square = addedTo(sum, 1))
    return factors.isPower(x, 1, kSlope) && factorsOf(square, x).isPower(x, 2, kCube);
  Value cube = sum.getLhs() == x ? sum.getRhs() : sum.getLhs();
  return (sum.getLhs() == x || sum.getRhs() == x) && factors.isPower(x, 0, kSlope) &&
         factorsOf(cube, x).isPower(x, 3, kCube);
}

/// The product of x, 1 / 2 and `gate`, which is 1 + tanh(...), as x; null where it is another.
static Value findInput(MulOp product, Value gate) {
  Value inner = addedTo(gate, 1);
  auto tanh = inner ? inner.getDefiningOp<TanhOp>() : TanhOp();
  if (!tanh)
    return {};
  // x is a factor, unless it is a product itself: then it is an operand on the way to the gate.
  SmallVector<Value> candidates = factorsOf(product, gate).factors;
  for (Value value = product; auto step = value.getDefiningOp<MulOp>();) {
    llvm::append_range(candidates, step.getOperands());
    value = step.getLhs().getDefiningOp<MulOp>() ? step.getLhs() : step.getRhs();
  }
  for (Value x : candidates) {
    Factors all = factorsOf(product, x);
    auto *place = llvm::find(all.factors, gate);
    if (x == gate || place == all.factors.end())
      continue;
    all.factors.erase(place);
    if (all.isPower(x, 1, 0.5) && isTanhArgument(tanh.getInput(), x))
      return x;
  }
  return {};
}

/// What `product` takes GELU of; null where it is no GELU.
static Value matchGelu(MulOp product) {
  for (Value factor : factorsOf(product, Value()).factors)
    if (factor.getDefiningOp<AddOp>())
      if (Value x = findInput(product, factor))
        return x;
  return {};
}

namespace {
struct RaiseGelu : mlir::ds::impl::RaiseGeluBase<RaiseGelu> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    // What is spelled out dies behind the op that takes its place; so the last product of each is met first.
    SmallVector<MulOp> products(getOperation().getOps<MulOp>());
    for (MulOp product : llvm::reverse(products)) {
      Value x = product->use_empty() ? Value() : matchGelu(product);
      if (!x)
        continue;
      OpBuilder builder(product);
      product.replaceAllUsesWith(
          builder.create<GeluOp>(product.getLoc(), product.getType(), x, builder.getUnitAttr()).getResult());
    }
  }
};
} // namespace
