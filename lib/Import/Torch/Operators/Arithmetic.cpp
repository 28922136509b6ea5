//===- Arithmetic.cpp - Elementwise arithmetic, comparisons and choices ---------===//

#include "../Operators.h"

#include <cmath>

namespace ds::ts {

namespace {

//===----------------------------------------------------------------------===//
// Two operands
//===----------------------------------------------------------------------===//

/// Both operands in one shape and type; `y` times alpha where the operator has one.
std::vector<TensorRef> operands(Call &call, const char *first = "self", const char *second = "other") {
  std::vector<TensorRef> both = {call.tensor(first), call.tensor(second)};
  at::ScalarType type = promote(both);
  unify(call.b, both, type);
  return both;
}

TensorRef scaled(Call &call, const TensorRef &x) {
  double alpha = call.numberOr("alpha", 1);
  return alpha == 1 ? x : combine(call.b, "mul", x, alpha);
}

Value add(Call &call) {
  if (!std::holds_alternative<TensorRef>(call.value("self")) && !call.isNumber("self"))
    throw Unsupported("aten::add of these values");
  auto both = operands(call);
  if (both[0]->type == at::kBool)
    return call.b.binary("or", both[0], both[1]);
  return call.b.binary("add", both[0], scaled(call, both[1]));
}

Value sub(Call &call) {
  auto both = operands(call);
  return call.b.binary("sub", both[0], scaled(call, both[1]));
}

Value rsub(Call &call) {
  auto both = operands(call);
  return call.b.binary("sub", both[1], scaled(call, both[0]));
}

Value mul(Call &call) {
  auto both = operands(call);
  return call.b.binary(both[0]->type == at::kBool ? "and" : "mul", both[0], both[1]);
}

/// floor(x / y); for integers the quotient that rounds down.
TensorRef floorQuotient(Builder &b, const TensorRef &x, const TensorRef &y) {
  TensorRef quotient = b.binary("div", x, y);
  if (c10::isFloatingType(x->type))
    return b.unary("floor", quotient);
  TensorRef zero = b.splat(0, x->shape, x->type), one = b.splat(1, x->shape, x->type);
  TensorRef rest = b.binary("sub", x, b.binary("mul", quotient, y));
  TensorRef isInexact = b.compare("ne", rest, zero);
  TensorRef signsDiffer = b.compare("lt", b.binary("mul", rest, y), zero);
  TensorRef below = b.binary("sub", quotient, one);
  return b.select(b.binary("and", isInexact, signsDiffer), below, quotient);
}

/// x towards zero.
TensorRef truncate(Builder &b, const TensorRef &x) {
  return b.binary("mul", b.unary("sign", x), b.unary("floor", b.unary("abs", x)));
}

Value div(Call &call) {
  std::string mode = call.text("rounding_mode");
  auto both = operands(call);
  if (mode.empty()) {
    if (!c10::isFloatingType(both[0]->type))
      both = {call.b.convert(both[0], at::kFloat), call.b.convert(both[1], at::kFloat)};
    return call.b.binary("div", both[0], both[1]);
  }
  if (mode == "floor")
    return floorQuotient(call.b, both[0], both[1]);
  TensorRef quotient = call.b.binary("div", both[0], both[1]);
  return c10::isFloatingType(quotient->type) ? truncate(call.b, quotient) : quotient;
}

Value floorDivide(Call &call) {
  auto both = operands(call);
  return floorQuotient(call.b, both[0], both[1]);
}

Value remainder(Call &call) {
  auto both = operands(call);
  TensorRef quotient = floorQuotient(call.b, both[0], both[1]);
  return call.b.binary("sub", both[0], call.b.binary("mul", quotient, both[1]));
}

Value reciprocal(Call &call) {
  TensorRef x = asFloat(call.b, call.tensor("self"));
  return call.b.binary("div", call.b.splat(1, x->shape, x->type), x);
}

/// x to an integer power by repeated multiplication: exact where a power function rounds.
TensorRef powInteger(Builder &b, const TensorRef &x, int64_t exponent) {
  TensorRef result, square = x;
  for (int64_t rest = exponent; rest > 0; rest /= 2) {
    if (rest % 2)
      result = result ? b.binary("mul", result, square) : square;
    if (rest > 1)
      square = b.binary("mul", square, square);
  }
  return result;
}

Value pow(Call &call) {
  Builder &b = call.b;
  std::vector<TensorRef> both = {call.tensor("self"), call.tensor("exponent")};
  at::ScalarType type = promote(both);
  auto exponent = splatValue(both[1]);
  if (exponent && both[1]->rank() == 0) {
    double power = exponent->toDouble();
    TensorRef x = b.convert(both[0], type);
    if (power == 0)
      return b.splat(1, x->shape, type);
    if (std::floor(power) == power && power >= 1 && power <= 8)
      return powInteger(b, x, static_cast<int64_t>(power));
    if (c10::isFloatingType(type) && power == 0.5)
      return b.unary("sqrt", x);
    if (c10::isFloatingType(type) && power == -0.5)
      return b.unary("rsqrt", x);
    // Powers of 1 / x: at 0 the gradient is infinite, where that of 1 / x^n would be infinity times 0.
    if (c10::isFloatingType(type) && std::floor(power) == power && power < 0 && power >= -8)
      return powInteger(b, b.binary("div", b.splat(1, x->shape, type), x), static_cast<int64_t>(-power));
  }
  if (!c10::isFloatingType(type))
    throw Unsupported("aten::pow of integers with a variable exponent");
  unify(b, both, type);
  return b.binary("pow", both[0], both[1]);
}

template <const char *const &op>
Value elementwise(Call &call) {
  auto both = operands(call);
  return call.b.binary(op, both[0], both[1]);
}
constexpr const char *maxName = "max", *minName = "min";

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

constexpr const char *eqName = "eq", *neName = "ne", *ltName = "lt", *leName = "le", *gtName = "gt",
                     *geName = "ge";

template <const char *const &predicate>
Value compare(Call &call) {
  auto both = operands(call);
  if (both[0]->type == at::kBool) // Order truth values as 0 and 1.
    both = {call.b.convert(both[0], at::kInt), call.b.convert(both[1], at::kInt)};
  return call.b.compare(predicate, both[0], both[1]);
}

constexpr const char *andName = "and", *orName = "or";

template <const char *const &op>
Value logical(Call &call) {
  std::vector<TensorRef> both = {call.tensor("self"), call.tensor("other")};
  unify(call.b, both, at::kBool);
  return call.b.binary(op, both[0], both[1]);
}

template <const char *const &op>
Value bitwise(Call &call) {
  if (call.tensor("self")->type != at::kBool || call.tensor("other")->type != at::kBool)
    throw Unsupported(call.schema.name() + " on integers");
  return logical<op>(call);
}

Value logicalXor(Call &call) {
  std::vector<TensorRef> both = {call.tensor("self"), call.tensor("other")};
  unify(call.b, both, at::kBool);
  TensorRef either = call.b.binary("or", both[0], both[1]), all = call.b.binary("and", both[0], both[1]);
  return call.b.binary("and", either, call.b.unary("not", all));
}

Value bitwiseXor(Call &call) {
  if (call.tensor("self")->type != at::kBool || call.tensor("other")->type != at::kBool)
    throw Unsupported(call.schema.name() + " of integers");
  return logicalXor(call);
}

Value logicalNot(Call &call) { return call.b.unary("not", call.b.convert(call.tensor("self"), at::kBool)); }

Value bitwiseNot(Call &call) {
  if (call.tensor("self")->type != at::kBool)
    throw Unsupported(call.schema.name() + " on integers");
  return call.b.unary("not", call.tensor("self"));
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

Value where(Call &call) {
  std::vector<TensorRef> both = {call.tensor("self"), call.tensor("other")};
  at::ScalarType type = promote(both);
  std::vector<TensorRef> all = {call.b.convert(call.tensor("condition"), at::kBool),
                                call.b.convert(both[0], type), call.b.convert(both[1], type)};
  unify(call.b, all, at::ScalarType::Undefined);
  return call.b.select(all[0], all[1], all[2]);
}

Value maskedFill(Call &call) {
  TensorRef x = call.tensor("self");
  std::vector<TensorRef> all = {call.b.convert(call.tensor("mask"), at::kBool),
                                call.b.convert(call.tensor("value"), x->type), x};
  unify(call.b, all, at::ScalarType::Undefined);
  return call.b.select(all[0], all[1], all[2]);
}

/// `edge` where x `isBeyond` it, else x: NaN stays, and the predicate says who has the gradient where they
/// are equal. An edge that is a tensor may be NaN, which counts as well.
TensorRef bound(Builder &b, const TensorRef &x, const TensorRef &edge, const char *isBeyond) {
  if (!edge)
    return x;
  bool isTensor = edge->rank() > 0 || !edge->isKnown();
  std::vector<TensorRef> both = {x, edge};
  unify(b, both, promote(both));
  TensorRef beyond = b.compare(isBeyond, both[0], both[1]);
  if (isTensor && c10::isFloatingType(both[1]->type))
    beyond = b.binary("or", beyond, b.compare("ne", both[1], both[1]));
  return b.select(beyond, both[1], both[0]);
}

/// The gradient at a bound is x's.
Value clamp(Call &call) {
  TensorRef x = bound(call.b, call.tensor("self"), call.optionalTensor("min"), "lt");
  return bound(call.b, x, call.optionalTensor("max"), "gt");
}

/// The gradient at a bound is 0.
Value hardtanh(Call &call) {
  TensorRef x = bound(call.b, call.tensor("self"), call.tensor("min_val"), "le");
  return bound(call.b, x, call.tensor("max_val"), "ge");
}

Value lerp(Call &call) {
  TensorRef start = call.tensor("self");
  TensorRef difference = combine(call.b, "sub", call.tensor("end"), start);
  return combine(call.b, "add", start, combine(call.b, "mul", difference, call.tensor("weight")));
}

Value addcmul(Call &call) {
  TensorRef product = combine(call.b, "mul", call.tensor("tensor1"), call.tensor("tensor2"));
  double value = call.numberOr("value", 1);
  return combine(call.b, "add", call.tensor("self"),
                 value == 1 ? product : combine(call.b, "mul", product, value));
}

Value addcdiv(Call &call) {
  TensorRef quotient = combine(call.b, "div", call.tensor("tensor1"), call.tensor("tensor2"));
  double value = call.numberOr("value", 1);
  return combine(call.b, "add", call.tensor("self"),
                 value == 1 ? quotient : combine(call.b, "mul", quotient, value));
}

/// x.copy_(y) and x.fill_(y): y in x's shape and type.
Value copy(Call &call) {
  TensorRef x = call.tensor("self");
  TensorRef source = call.has("src") ? call.tensor("src") : call.tensor("value");
  return broadcastTo(call.b, call.b.convert(source, x->type), x->shape);
}

Value zero(Call &call) { return call.b.splat(0, call.tensor("self")->shape, call.tensor("self")->type); }

constexpr Operator operators[] = {
    {"aten::add", add},
    {"aten::sub", sub},
    {"aten::rsub", rsub},
    {"aten::mul", mul},
    {"aten::div", div},
    {"aten::floor_divide", floorDivide},
    {"aten::remainder", remainder},
    {"aten::reciprocal", reciprocal},
    {"aten::pow", pow},
    {"aten::maximum", elementwise<maxName>},
    {"aten::minimum", elementwise<minName>},
    {"aten::eq", compare<eqName>},
    {"aten::ne", compare<neName>},
    {"aten::lt", compare<ltName>},
    {"aten::le", compare<leName>},
    {"aten::gt", compare<gtName>},
    {"aten::ge", compare<geName>},
    {"aten::logical_and", logical<andName>},
    {"aten::logical_or", logical<orName>},
    {"aten::logical_xor", logicalXor},
    {"aten::logical_not", logicalNot},
    {"aten::bitwise_and", bitwise<andName>},
    {"aten::__and__", bitwise<andName>},
    {"aten::bitwise_or", bitwise<orName>},
    {"aten::__or__", bitwise<orName>},
    {"aten::bitwise_xor", bitwiseXor},
    {"aten::__xor__", bitwiseXor},
    {"aten::bitwise_not", bitwiseNot},
    {"aten::where", where},
    {"aten::masked_fill", maskedFill},
    {"aten::clamp", clamp},
    {"aten::clamp_min", clamp},
    {"aten::clamp_max", clamp},
    {"aten::hardtanh", hardtanh},
    {"aten::lerp", lerp},
    {"aten::addcmul", addcmul},
    {"aten::addcdiv", addcdiv},
    {"aten::copy", copy},
    {"aten::fill", copy},
    {"aten::zero", zero},
};

} // namespace

OperatorList arithmeticOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
