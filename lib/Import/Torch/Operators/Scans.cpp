//===- Scans.cpp - Sums so far, products and positions of extremes ----------------===//

#include "../Operators.h"

#include <algorithm>

namespace ds::ts {

namespace {

/// result[i] is the sum of x[j] for j up to i, which itself counts where `inclusive`, along `dim`.
///
/// A short dimension is summed under a mask, which one kernel makes as it adds; a long one in blocks: within
/// each, and of the blocks before it, by which each element is a sum of sums.
TensorRef sumSoFar(Builder &b, const TensorRef &x, int64_t dim, bool inclusive) {
  constexpr int64_t block = 64;
  const int64_t size = x->shape[dim];
  Shape wide = x->shape;
  if (size <= 2 * block) {
    wide.insert(wide.begin() + dim, size);
    TensorRef row = b.iota(dim, 0, 1, wide, at::kInt), column = b.iota(dim + 1, 0, 1, wide, at::kInt);
    TensorRef addends = broadcastTo(b, unsqueeze(b, x, dim), wide);
    TensorRef counts = b.compare(inclusive ? "le" : "lt", column, row);
    return b.reduce("sum", b.select(counts, addends, b.splat(0, wide, x->type)), {dim + 1});
  }
  const int64_t blocks = (size + block - 1) / block;
  wide[dim] = blocks * block;
  TensorRef padded = b.pad(x, Shape(x->rank(), 0), wide);
  Shape apart = wide;
  apart[dim] = blocks;
  apart.insert(apart.begin() + dim + 1, block);
  TensorRef pieces = b.reshape(padded, apart);
  TensorRef before = unsqueeze(b, sumSoFar(b, b.reduce("sum", pieces, {dim + 1}), dim, false), dim + 1);
  TensorRef within = sumSoFar(b, pieces, dim + 1, inclusive);
  TensorRef sums = b.reshape(b.binary("add", within, broadcastTo(b, before, apart)), wide);
  return narrow(b, sums, dim, 0, size);
}

Value cumulativeSum(Call &call) {
  TensorRef x = summand(call);
  if (x->rank() == 0 || x->numel() == 0)
    return x;
  return sumSoFar(call.b, x, call.dim("dim", x->rank()), true);
}

/// Halves are multiplied with each other until one element is left: a gradient is then a product of the
/// others, also where some are 0.
TensorRef multiplyAlong(Builder &b, TensorRef x, int64_t dim) {
  while (x->shape[dim] > 1) {
    const int64_t size = x->shape[dim], half = size / 2;
    TensorRef both = b.binary("mul", narrow(b, x, dim, 0, half), narrow(b, x, dim, half, half));
    x = size % 2 == 0 ? both : b.concat({both, narrow(b, x, dim, size - 1, 1)}, dim);
  }
  return x;
}

Value product(Call &call) {
  TensorRef x = summand(call);
  const bool isWhole = !call.has("dim");
  if (isWhole)
    x = call.b.reshape(x, {x->numel()});
  const int64_t dim = isWhole ? 0 : call.dim("dim", x->rank());
  if (x->rank() == 0)
    return x;
  Shape shape = x->shape;
  if (isWhole || !call.flag("keepdim"))
    shape.erase(shape.begin() + dim);
  else
    shape[dim] = 1;
  if (x->shape[dim] == 0)
    return call.b.splat(1, shape, x->type);
  return call.b.reshape(multiplyAlong(call.b, x, dim), shape);
}

template <const char *const &kind>
Value positionOfExtreme(Call &call) {
  TensorRef x = call.tensor("self");
  if (x->numel() == 0)
    fail(call.schema.name() + " of a tensor of shape " + spellList(x->shape));
  if (!call.has("dim")) {
    TensorRef flat = call.b.reshape(x, {x->numel()});
    TensorRef found = call.b.convert(firstPosition(call.b, kind, flat, 0), at::kLong);
    return call.b.reshape(found, call.flag("keepdim") ? Shape(x->rank(), 1) : Shape());
  }
  if (x->rank() == 0)
    return call.b.splat(0, {}, at::kLong);
  const int64_t dim = call.dim("dim", x->rank());
  TensorRef found = call.b.convert(firstPosition(call.b, kind, x, dim), at::kLong);
  Shape shape = found->shape;
  if (!call.flag("keepdim"))
    shape.erase(shape.begin() + dim);
  return call.b.reshape(found, shape);
}
constexpr const char *maxName = "max", *minName = "min";

constexpr Operator operators[] = {
    {"aten::cumsum", cumulativeSum},
    {"aten::prod", product},
    {"aten::argmax", positionOfExtreme<maxName>},
    {"aten::argmin", positionOfExtreme<minName>},
};

} // namespace

OperatorList scanOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
