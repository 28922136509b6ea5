//===- Reductions.cpp - Sums, means, extremes and softmax -----------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>
#include <cmath>

namespace ds::ts {

TensorRef firstPosition(Builder &b, const char *kind, const TensorRef &x, int64_t dim) {
  TensorRef most = reduceDims(b, kind, x, {dim}, true);
  TensorRef isMost = b.compare("eq", x, broadcastTo(b, most, x->shape));
  if (c10::isFloatingType(x->type))
    isMost = b.binary("or", isMost, b.compare("ne", x, x));
  TensorRef column = b.iota(dim, 0, 1, x->shape, at::kInt);
  TensorRef none = b.splat(x->shape[dim], x->shape, at::kInt);
  return reduceDims(b, "min", b.select(isMost, column, none), {dim}, true);
}

namespace {

Value sum(Call &call) {
  TensorRef x = summand(call);
  return reduceDims(call.b, "sum", x, call.dims("dim", x->rank()), call.flag("keepdim"));
}

Value mean(Call &call) {
  TensorRef x = call.tensor("self");
  x = call.b.convert(x, call.type("dtype", x->type));
  if (!c10::isFloatingType(x->type))
    fail("aten::mean of integers");
  return meanDims(call.b, x, call.dims("dim", x->rank()), call.flag("keepdim"));
}

/// The mean, with the dimensions kept, and the variance. `correction` is taken off the count.
std::pair<TensorRef, TensorRef> moments(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  Shape dims = call.dims("dim", x->rank());
  double count = 1, correction = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(x->shape[dim]);
  if (call.has("correction"))
    correction = call.number("correction");
  else if (call.has("unbiased"))
    correction = call.flag("unbiased") ? 1 : 0;
  TensorRef center = meanDims(b, x, dims, true);
  TensorRef deviation = b.binary("sub", x, broadcastTo(b, center, x->shape));
  TensorRef squares = reduceDims(b, "sum", b.binary("mul", deviation, deviation), dims, call.flag("keepdim"));
  return {center, combine(b, "mul", squares, 1 / std::max(0.0, count - correction))};
}

/// The mean in the shape that the operator gives it.
TensorRef meanResult(Call &call, const TensorRef &center, const TensorRef &variance) {
  return call.b.reshape(center, variance->shape);
}

/// The root of a sum of squares. Where that is 0 its gradient is 0, as PyTorch says of norms and deviations:
/// the root's own is infinite there, which times the 0 that was squared is no number.
TensorRef rootOfSquares(Builder &b, const TensorRef &squares) {
  TensorRef zero = b.splat(0, squares->shape, squares->type), one = b.splat(1, squares->shape, squares->type);
  TensorRef isZero = b.compare("eq", squares, zero);
  return b.select(isZero, zero, b.unary("sqrt", b.select(isZero, one, squares)));
}

Value var(Call &call) { return moments(call).second; }
Value deviation(Call &call) { return rootOfSquares(call.b, moments(call).second); }

Value varMean(Call &call) {
  auto [center, variance] = moments(call);
  return makeTuple({variance, meanResult(call, center, variance)});
}

Value stdMean(Call &call) {
  auto [center, variance] = moments(call);
  return makeTuple({rootOfSquares(call.b, variance), meanResult(call, center, variance)});
}

template <const char *const &kind>
Value extreme(Call &call) {
  TensorRef x = call.tensor("self");
  return reduceDims(call.b, kind, x, call.dims("dim", x->rank()), call.flag("keepdim"));
}
constexpr const char *maxName = "max", *minName = "min";

/// The extreme along one dimension, taken from the element at its position: that one alone has the gradient,
/// where the maximum of a reduction shares it among all that are equal.
TensorRef firstExtreme(Builder &b, const TensorRef &x, const TensorRef &first, int64_t dim, bool keep) {
  TensorRef column = b.iota(dim, 0, 1, x->shape, at::kInt);
  TensorRef isFirst = b.compare("eq", column, broadcastTo(b, first, x->shape));
  TensorRef zero = b.splat(0, x->shape, x->type);
  return reduceDims(b, "sum", b.select(isFirst, x, zero), {dim}, keep);
}

/// torch.max and torch.min: of two tensors, of all elements, or along a dimension with its positions. Of all
/// elements those that are equal share the gradient; along a dimension the element of the position has it.
template <const char *const &kind>
Value extremeOrPair(Call &call) {
  TensorRef x = call.tensor("self");
  if (call.has("other"))
    return combine(call.b, kind, x, call.tensor("other"));
  if (!call.has("dim"))
    return extreme<kind>(call);
  if (x->rank() == 0)
    return makeTuple({extreme<kind>(call), call.b.splat(0, {}, at::kLong)});
  const int64_t dim = call.dim("dim", x->rank());
  const bool keeps = call.flag("keepdim");
  TensorRef first = firstPosition(call.b, kind, x, dim);
  Value values =
      c10::isFloatingType(x->type) ? firstExtreme(call.b, x, first, dim, keeps) : extreme<kind>(call);
  Shape shape = first->shape;
  if (!keeps)
    shape.erase(shape.begin() + dim);
  return makeTuple({values, call.b.reshape(call.b.convert(first, at::kLong), shape)});
}

/// Any and all of truth values, as the largest or smallest of zeros and ones.
template <const char *const &kind>
Value truth(Call &call) {
  TensorRef x = call.b.convert(call.b.convert(call.tensor("self"), at::kBool), at::kInt);
  TensorRef found = reduceDims(call.b, kind, x, call.dims("dim", x->rank()), call.flag("keepdim"));
  return call.b.convert(found, at::kBool);
}

/// A p-norm of vectors, for p of 1 or 2.
Value norm(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  double order = call.numberOr(call.has("ord") ? "ord" : "p", 2);
  Shape dims = call.dims("dim", x->rank());
  if (call.has("ord") && call.schema.name() == "aten::linalg_norm" && dims.size() == 2)
    throw Unsupported(call.schema.name() + " of a matrix, with an order");
  if (order == 1)
    return reduceDims(b, "sum", b.unary("abs", x), dims, call.flag("keepdim"));
  if (order != 2)
    throw Unsupported(call.schema.name() + " of order " + std::to_string(order));
  return rootOfSquares(b, reduceDims(b, "sum", b.binary("mul", x, x), dims, call.flag("keepdim")));
}

/// sum(x * y) / (max(|x|, eps) * max(|y|, eps))
Value cosineSimilarity(Call &call) {
  Builder &b = call.b;
  std::vector<TensorRef> both = {call.tensor("x1"), call.tensor("x2")};
  unify(b, both, promote(both));
  Shape dims = {call.dim("dim", both[0]->rank())};
  double epsilon = call.numberOr("eps", 1e-8);
  auto dot = [&](const TensorRef &x, const TensorRef &y) {
    return b.reduce("sum", b.binary("mul", x, y), dims);
  };
  auto perLength = [&](const TensorRef &x) {
    TensorRef squares = dot(x, x), least = b.splat(epsilon * epsilon, squares->shape, squares->type);
    return b.unary("rsqrt", b.select(b.compare("lt", squares, least), least, squares));
  };
  TensorRef cosine = b.binary("mul", dot(both[0], both[1]), perLength(both[0]));
  return b.binary("mul", cosine, perLength(both[1]));
}

template <bool log>
Value softmax(Call &call) {
  TensorRef x = call.tensor("self");
  x = asFloat(call.b, call.b.convert(x, call.type("dtype", x->type)));
  int64_t dim = call.dim("dim", x->rank());
  TensorRef result =
      x->rank() == 0 ? call.b.splat(log ? 0 : 1, {}, x->type) : emitSoftmax(call.b, x, dim, log);
  if (log) {
    result->logSoftmaxOf = std::make_shared<Tensor>(*x); // As it is now: x may be written in place later.
    result->logSoftmaxDim = dim;
  }
  return result;
}

/// max + log(sum(exp(x - max))), where an infinite max counts as 0: infinity less itself would be no number.
Value logSumExp(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  Shape dims = call.dims("dim", x->rank());
  TensorRef peak = reduceDims(b, "max", x, dims, true);
  auto number = [&](double value) { return b.splat(value, peak->shape, peak->type); };
  TensorRef isInfinite = b.compare("eq", b.unary("abs", peak), number(HUGE_VAL));
  peak = b.select(isInfinite, number(0), peak);
  TensorRef shifted = b.binary("sub", x, broadcastTo(b, peak, x->shape));
  TensorRef sums = reduceDims(b, "sum", b.unary("exp", shifted), dims, call.flag("keepdim"));
  return b.binary("add", b.unary("log", sums), b.reshape(peak, sums->shape));
}

constexpr Operator operators[] = {
    {"aten::sum", sum},
    {"aten::mean", mean},
    {"aten::var", var},
    {"aten::std", deviation},
    {"aten::var_mean", varMean},
    {"aten::std_mean", stdMean},
    {"aten::amax", extreme<maxName>},
    {"aten::amin", extreme<minName>},
    {"aten::max", extremeOrPair<maxName>},
    {"aten::min", extremeOrPair<minName>},
    {"aten::any", truth<maxName>},
    {"aten::all", truth<minName>},
    {"aten::norm", norm},
    {"aten::linalg_norm", norm},
    {"aten::linalg_vector_norm", norm},
    {"aten::frobenius_norm", norm},
    {"aten::softmax", softmax<false>},
    {"aten::_softmax", softmax<false>},
    {"aten::log_softmax", softmax<true>},
    {"aten::_log_softmax", softmax<true>},
    {"aten::logsumexp", logSumExp},
    {"aten::cosine_similarity", cosineSimilarity},
};

} // namespace

OperatorList reductionOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
