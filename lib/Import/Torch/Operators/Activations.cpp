//===- Activations.cpp - Functions of one element -------------------------------===//
//
// The dialect has few of them; the others are spelled out, for fusion makes one loop of the chain.
//
//===---------------------------------------------------------------------------===//

#include "../Operators.h"

#include <cmath>

namespace ds::ts {

namespace {

TensorRef number(Builder &b, const TensorRef &like, double value) {
  return b.splat(value, like->shape, like->type);
}
TensorRef input(Call &call) { return asFloat(call.b, call.tensor("self")); }

template <const char *const &op>
Value unary(Call &call) {
  return call.b.unary(op, input(call));
}
constexpr const char *expName = "exp", *logName = "log", *sqrtName = "sqrt", *rsqrtName = "rsqrt",
                     *tanhName = "tanh";
constexpr const char *erfName = "erf", *sigmoidName = "sigmoid", *sinName = "sin", *cosName = "cos";

/// Operators that integers keep their type in.
template <const char *const &op>
Value unaryOfNumbers(Call &call) {
  return call.b.unary(op, call.tensor("self"));
}
constexpr const char *negName = "neg", *absName = "abs";

/// Rounding and sign: integers are what they are.
template <const char *const &op>
Value rounding(Call &call) {
  TensorRef x = call.tensor("self");
  if (!c10::isFloatingType(x->type))
    throw Unsupported(call.schema.name() + " of integers");
  return call.b.unary(op, x);
}
constexpr const char *floorName = "floor", *signName = "sign";

Value ceil(Call &call) {
  return call.b.unary("neg", call.b.unary("floor", call.b.unary("neg", input(call))));
}

/// Towards zero, or x itself where that is an integer.
TensorRef truncated(Builder &b, const TensorRef &x) {
  if (!c10::isFloatingType(x->type))
    return x;
  TensorRef up = b.unary("neg", b.unary("floor", b.unary("neg", x)));
  TensorRef isNegative = b.compare("lt", x, b.splat(0, x->shape, x->type));
  return b.select(isNegative, up, b.unary("floor", x));
}

Value trunc(Call &call) { return truncated(call.b, call.tensor("self")); }
Value frac(Call &call) {
  TensorRef x = call.tensor("self");
  return call.b.binary("sub", x, truncated(call.b, x));
}

/// To the nearest integer, and to the even one of two that are equally near.
Value round(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  if (call.integerOr("decimals", 0) != 0)
    throw Unsupported("aten::round to decimals");
  if (!c10::isFloatingType(x->type))
    return x;
  TensorRef below = b.unary("floor", x), half = b.splat(0.5, x->shape, x->type);
  TensorRef rest = b.binary("sub", x, below), above = combine(b, "add", below, 1);
  TensorRef halves = combine(b, "mul", below, 0.5);
  TensorRef isEven = b.compare("eq", halves, b.unary("floor", halves));
  TensorRef nearer = b.select(b.compare("lt", rest, half), below, above);
  return b.select(b.binary("and", b.compare("eq", rest, half), isEven), below, nearer);
}

Value isNaN(Call &call) {
  TensorRef x = input(call);
  return call.b.compare("ne", x, x);
}

/// The magnitude compared with infinity.
template <const char *const &predicate>
Value compareInfinity(Call &call) {
  TensorRef x = input(call);
  return call.b.compare(predicate, call.b.unary("abs", x), call.b.splat(HUGE_VAL, x->shape, x->type));
}
constexpr const char *isName = "eq", *isBelowName = "lt";

/// (exp(x) +- exp(-x)) / 2
template <const char *const &op>
Value hyperbolic(Call &call) {
  TensorRef x = input(call);
  TensorRef both = call.b.binary(op, call.b.unary("exp", x), call.b.unary("exp", call.b.unary("neg", x)));
  return combine(call.b, "mul", both, 0.5);
}
constexpr const char *sumName = "add", *differenceName = "sub";

Value square(Call &call) { return call.b.binary("mul", call.tensor("self"), call.tensor("self")); }

Value exp2(Call &call) { return call.b.unary("exp", combine(call.b, "mul", input(call), std::log(2.0))); }
Value expm1(Call &call) { return combine(call.b, "sub", call.b.unary("exp", input(call)), 1); }
Value log1p(Call &call) { return call.b.unary("log", combine(call.b, "add", input(call), 1)); }
Value log2(Call &call) { return combine(call.b, "mul", call.b.unary("log", input(call)), 1 / std::log(2.0)); }
Value log10(Call &call) {
  return combine(call.b, "mul", call.b.unary("log", input(call)), 1 / std::log(10.0));
}
Value tan(Call &call) {
  TensorRef x = input(call);
  return call.b.binary("div", call.b.unary("sin", x), call.b.unary("cos", x));
}
Value erfc(Call &call) {
  TensorRef x = input(call);
  return call.b.binary("sub", number(call.b, x, 1), call.b.unary("erf", x));
}

/// x where x > 0, else `below`. The gradient at 0 is that of `below`, as in PyTorch.
TensorRef whenPositive(Builder &b, const TensorRef &x, const TensorRef &above, const TensorRef &below) {
  return b.select(b.compare("gt", x, number(b, x, 0)), above, below);
}

/// 0 where x <= 0, else x: NaN stays, and so does its gradient.
Value relu(Call &call) {
  TensorRef x = call.tensor("self"), zero = number(call.b, x, 0);
  return call.b.select(call.b.compare("le", x, zero), zero, x);
}

Value relu6(Call &call) {
  TensorRef x = call.tensor("self"), zero = number(call.b, x, 0), six = number(call.b, x, 6);
  TensorRef bounded = call.b.select(call.b.compare("le", x, zero), zero, x);
  return call.b.select(call.b.compare("ge", bounded, six), six, bounded);
}

Value leakyRelu(Call &call) {
  TensorRef x = call.tensor("self");
  return whenPositive(call.b, x, x, combine(call.b, "mul", x, call.numberOr("negative_slope", 0.01)));
}

Value prelu(Call &call) {
  TensorRef x = call.tensor("self"), weight = call.tensor("weight");
  Shape shape(x->rank(), 1);
  if (weight->numel() > 1 && x->rank() > 1)
    shape[1] = weight->numel();
  TensorRef slope = broadcastTo(call.b, call.b.reshape(weight, shape), x->shape);
  return whenPositive(call.b, x, x, call.b.binary("mul", x, slope));
}

/// scale * (x where x > 0, else alpha * (exp(x * inputScale) - 1)). The exponent never sees a positive
/// number, so that the side not taken cannot overflow into the gradient.
TensorRef exponentialUnit(Builder &b, const TensorRef &x, double alpha, double scale, double inputScale) {
  TensorRef negative = whenPositive(b, x, number(b, x, 0), x); // whose gradient at 0 is whole, unlike min's
  TensorRef raised = b.unary("exp", inputScale == 1 ? negative : combine(b, "mul", negative, inputScale));
  TensorRef below = combine(b, "mul", combine(b, "sub", raised, 1), alpha);
  TensorRef result = whenPositive(b, x, x, below);
  return scale == 1 ? result : combine(b, "mul", result, scale);
}

Value elu(Call &call) {
  return exponentialUnit(call.b, call.tensor("self"), call.numberOr("alpha", 1), call.numberOr("scale", 1),
                         call.numberOr("input_scale", 1));
}

Value celu(Call &call) {
  double alpha = call.numberOr("alpha", 1);
  return exponentialUnit(call.b, call.tensor("self"), alpha, 1, 1 / alpha);
}

Value selu(Call &call) {
  return exponentialUnit(call.b, call.tensor("self"), 1.6732632423543772848170429916717,
                         1.0507009873554804934193349852946, 1);
}

Value gelu(Call &call) {
  return call.b.unary(call.text("approximate") == "tanh" ? "gelu tanh" : "gelu", call.tensor("self"));
}

Value silu(Call &call) {
  TensorRef x = call.tensor("self");
  return call.b.binary("mul", x, call.b.unary("sigmoid", x));
}

/// log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|)): never overflows.
TensorRef softplusOf(Builder &b, const TensorRef &x) {
  TensorRef decay = b.unary("exp", b.unary("neg", b.unary("abs", x)));
  return b.binary("add", b.binary("max", x, number(b, x, 0)), b.unary("log", combine(b, "add", decay, 1)));
}

Value softplus(Call &call) {
  TensorRef x = call.tensor("self");
  double beta = call.numberOr("beta", 1), threshold = call.numberOr("threshold", 20);
  TensorRef scaled = beta == 1 ? x : combine(call.b, "mul", x, beta);
  TensorRef smooth = softplusOf(call.b, scaled);
  smooth = beta == 1 ? smooth : combine(call.b, "mul", smooth, 1 / beta);
  return call.b.select(call.b.compare("gt", scaled, number(call.b, x, threshold)), x, smooth);
}

Value logSigmoid(Call &call) {
  TensorRef x = call.tensor("self");
  return call.b.unary("neg", softplusOf(call.b, call.b.unary("neg", x)));
}

Value mish(Call &call) {
  TensorRef x = call.tensor("self");
  return call.b.binary("mul", x, call.b.unary("tanh", softplusOf(call.b, x)));
}

/// x / 6 + 1 / 2, but 0 where x `isLow` -3 and 1 where it `isHigh` 3: the predicates say who has the gradient
/// at these two.
TensorRef ramp(Builder &b, const TensorRef &x, const char *isLow, const char *isHigh) {
  TensorRef line = combine(b, "mul", combine(b, "add", x, 3), 1.0 / 6);
  line = b.select(b.compare(isLow, x, number(b, x, -3)), number(b, x, 0), line);
  return b.select(b.compare(isHigh, x, number(b, x, 3)), number(b, x, 1), line);
}

/// The gradient at -3 and 3 is 0.
Value hardSigmoid(Call &call) { return ramp(call.b, call.tensor("self"), "le", "ge"); }

/// The gradient at -3 and 3 is that of x * (x + 3) / 6.
Value hardSwish(Call &call) {
  TensorRef x = call.tensor("self");
  return call.b.binary("mul", x, ramp(call.b, x, "lt", "gt"));
}

Value glu(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank()), half = x->shape[dim] / 2;
  if (x->shape[dim] % 2)
    fail("aten::glu cuts dimension " + std::to_string(dim) + " of odd size " + std::to_string(x->shape[dim]));
  auto parts = call.b.split(x, dim, {half, half});
  return call.b.binary("mul", parts[0], call.b.unary("sigmoid", parts[1]));
}

constexpr Operator operators[] = {
    {"aten::exp", unary<expName>},
    {"aten::log", unary<logName>},
    {"aten::sqrt", unary<sqrtName>},
    {"aten::rsqrt", unary<rsqrtName>},
    {"aten::tanh", unary<tanhName>},
    {"aten::erf", unary<erfName>},
    {"aten::sigmoid", unary<sigmoidName>},
    {"aten::sin", unary<sinName>},
    {"aten::cos", unary<cosName>},
    {"aten::neg", unaryOfNumbers<negName>},
    {"aten::abs", unaryOfNumbers<absName>},
    {"aten::floor", rounding<floorName>},
    {"aten::sign", rounding<signName>},
    {"aten::ceil", ceil},
    {"aten::trunc", trunc},
    {"aten::frac", frac},
    {"aten::round", round},
    {"aten::isnan", isNaN},
    {"aten::isinf", compareInfinity<isName>},
    {"aten::isfinite", compareInfinity<isBelowName>},
    {"aten::cosh", hyperbolic<sumName>},
    {"aten::sinh", hyperbolic<differenceName>},
    {"aten::square", square},
    {"aten::exp2", exp2},
    {"aten::expm1", expm1},
    {"aten::log1p", log1p},
    {"aten::log2", log2},
    {"aten::log10", log10},
    {"aten::tan", tan},
    {"aten::erfc", erfc},
    {"aten::relu", relu},
    {"aten::relu6", relu6},
    {"aten::leaky_relu", leakyRelu},
    {"aten::prelu", prelu},
    {"aten::elu", elu},
    {"aten::celu", celu},
    {"aten::selu", selu},
    {"aten::gelu", gelu},
    {"aten::silu", silu},
    {"aten::softplus", softplus},
    {"aten::log_sigmoid", logSigmoid},
    {"aten::mish", mish},
    {"aten::hardsigmoid", hardSigmoid},
    {"aten::hardswish", hardSwish},
    {"aten::glu", glu},
};

} // namespace

OperatorList activationOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
