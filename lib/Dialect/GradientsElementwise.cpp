//===- GradientsElementwise.cpp - Derivatives of elementwise ops ----------------===//
//
// Each op says here how a gradient passes through it. Where both the operand and the result would do, the
// result is named when it is what later ops read anyway (exp, tanh, sigmoid, sqrt) and the operand otherwise:
// named values are what backward keeps alive.
//
//===----------------------------------------------------------------------------===//
#include "ds/Dialect/Emitter.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;

using Values = SmallVectorImpl<Value>;

/// What every rule of this file starts from: an emitter at the op, and the gradient of its only result.
namespace {
struct Rule : Emitter {
  Rule(OpBuilder &builder, Operation *op, ValueRange resultGrads)
      : Emitter(builder, op->getLoc()), grad(resultGrads.front()) {}
  Value grad;
};
} // namespace

/// `build()` where the operand's gradient is needed and the operand is a float tensor, else null.
template <class Build>
static Value onlyIf(bool needed, Value operand, Build build) {
  return needed && isFloatTensor(operand) ? build() : Value();
}

//===----------------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------------===//

void NegOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(onlyIf(needed[0], getInput(), [&] { return rule.neg(rule.grad); }));
}

void AbsOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(
      onlyIf(needed[0], getInput(), [&] { return rule.mul(rule.grad, rule.unary<SignOp>(getInput())); }));
}

void ExpOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(rule.mul(rule.grad, getResult()));
}

void LogOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(rule.div(rule.grad, getInput()));
}

void SqrtOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                            Values &grads) {
  Rule rule(builder, *this, resultGrads); // 1 / (2 y)
  grads.push_back(rule.div(rule.scale(rule.grad, 0.5), getResult()));
}

void RsqrtOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                             Values &grads) {
  Rule rule(builder, *this, resultGrads); // y = x^-1/2, so y' = -y^3 / 2
  Value cube = rule.mul(rule.square(getResult()), getResult());
  grads.push_back(rule.mul(rule.scale(rule.grad, -0.5), cube));
}

void TanhOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                            Values &grads) {
  Rule rule(builder, *this, resultGrads);
  Value slope = rule.sub(rule.splatLike(getResult(), 1.0), rule.square(getResult()));
  grads.push_back(rule.mul(rule.grad, slope));
}

void ErfOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  Value bell = rule.unary<ExpOp>(rule.neg(rule.square(getInput())));
  grads.push_back(rule.mul(rule.grad, rule.scale(bell, M_2_SQRTPI)));
}

void GeluOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                            Values &grads) {
  grads.push_back(
      builder.create<GeluGradOp>(getLoc(), getType(), resultGrads.front(), getInput(), getTanhAttr()));
}

void SigmoidOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  Rule rule(builder, *this, resultGrads);
  Value other = rule.sub(rule.splatLike(getResult(), 1.0), getResult());
  grads.push_back(rule.mul(rule.grad, rule.mul(getResult(), other)));
}

void SinOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(rule.mul(rule.grad, rule.unary<CosOp>(getInput())));
}

void CosOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(rule.neg(rule.mul(rule.grad, rule.unary<SinOp>(getInput()))));
}

void ConvertOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                               Values &grads) {
  Rule rule(builder, *this, resultGrads);
  Type element = tensorType(getInput()).getElementType();
  grads.push_back(onlyIf(needed[0], getInput(), [&] { return rule.convert(rule.grad, element); }));
}

//===----------------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------------===//

void AddOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  for (auto [operand, isNeeded] : llvm::zip_equal(getOperands(), needed))
    grads.push_back(onlyIf(isNeeded, operand, [&] { return resultGrads.front(); }));
}

void SubOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(onlyIf(needed[0], getLhs(), [&] { return rule.grad; }));
  grads.push_back(onlyIf(needed[1], getRhs(), [&] { return rule.neg(rule.grad); }));
}

void MulOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(onlyIf(needed[0], getLhs(), [&] { return rule.mul(rule.grad, getRhs()); }));
  grads.push_back(onlyIf(needed[1], getRhs(), [&] { return rule.mul(rule.grad, getLhs()); }));
}

void DivOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads); // d(a/b)/da = 1/b, d(a/b)/db = -(a/b)/b
  if (!isFloatTensor(getLhs()))
    return grads.append(2, Value());
  Value quotient = rule.div(rule.grad, getRhs());
  grads.push_back(needed[0] ? quotient : Value());
  grads.push_back(needed[1] ? rule.neg(rule.mul(quotient, getResult())) : Value());
}

/// Gradients of max and min: none to the operand that `loses`, half to each where both are equal, and all of
/// it to both where one is NaN, as PyTorch does.
static void splitByWinner(Rule rule, Predicate loses, Value lhs, Value rhs, ArrayRef<bool> needed,
                          Values &grads) {
  if (!isFloatTensor(lhs))
    return grads.append(2, Value());
  Value half = rule.scale(rule.grad, 0.5), zero = rule.splatLike(rule.grad, 0.0);
  auto share = [&](Value own, Value other) {
    Value tie = rule.select(rule.compare(Predicate::EQ, own, other), half, rule.grad);
    return rule.select(rule.compare(loses, own, other), zero, tie);
  };
  grads.push_back(needed[0] ? share(lhs, rhs) : Value());
  grads.push_back(needed[1] ? share(rhs, lhs) : Value());
}

void MaxOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  splitByWinner(Rule(builder, *this, resultGrads), Predicate::LT, getLhs(), getRhs(), needed, grads);
}

void MinOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  splitByWinner(Rule(builder, *this, resultGrads), Predicate::GT, getLhs(), getRhs(), needed, grads);
}

/// Gradient of a^b by a: b a^(b-1), and 0 where b is 0 whatever a is.
static Value powGradientByBase(Rule &rule, Value base, Value exponent) {
  Value slope = rule.mul(exponent, rule.binary<PowOp>(base, rule.shift(exponent, -1.0)));
  std::optional<double> constant = getSplatValue(exponent);
  if (!constant || *constant == 0.0) {
    Value zero = rule.splatLike(base, 0.0);
    slope = rule.select(rule.compare(Predicate::EQ, exponent, zero), zero, slope);
  }
  return rule.mul(rule.grad, slope);
}

void PowOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed, Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(needed[0] ? powGradientByBase(rule, getLhs(), getRhs()) : Value());
  if (!needed[1])
    return grads.push_back(Value());
  // a^b log(a), whose limit for a -> 0 and b >= 0 is 0.
  Value zero = rule.splatLike(getLhs(), 0.0);
  Value slope = rule.mul(getResult(), rule.unary<LogOp>(getLhs()));
  Value limit = builder.create<AndOp>(getLoc(), rule.compare(Predicate::EQ, getLhs(), zero),
                                      rule.compare(Predicate::GE, getRhs(), zero));
  grads.push_back(rule.mul(rule.grad, rule.select(limit, zero, slope)));
}

void SelectOp::buildGradients(OpBuilder &builder, ValueRange resultGrads, ArrayRef<bool> needed,
                              Values &grads) {
  Rule rule(builder, *this, resultGrads);
  grads.push_back(Value());
  if (!isFloatTensor(getResult()))
    return grads.append(2, Value());
  Value zero = rule.splatLike(rule.grad, 0.0);
  grads.push_back(needed[1] ? rule.select(getCondition(), rule.grad, zero) : Value());
  grads.push_back(needed[2] ? rule.select(getCondition(), zero, rule.grad) : Value());
}
