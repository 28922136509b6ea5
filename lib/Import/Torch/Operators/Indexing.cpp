//===- Indexing.cpp - Windows, picks, paddings and triangles --------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>

namespace ds::ts {

TensorRef narrow(Builder &b, const TensorRef &x, int64_t dim, int64_t start, int64_t size, int64_t step) {
  Shape offsets(x->rank(), 0), strides(x->rank(), 1), sizes = x->shape;
  offsets[dim] = start;
  strides[dim] = step;
  sizes[dim] = size;
  return b.slice(x, offsets, sizes, strides);
}

TensorRef pickLast(Builder &b, const TensorRef &x, const TensorRef &index) {
  TensorRef wide = broadcastTo(b, index, x->shape);
  TensorRef column = b.iota(x->rank() - 1, 0, 1, x->shape, index->type);
  TensorRef zero = b.splat(0, x->shape, x->type);
  return reduceDims(b, "sum", b.select(b.compare("eq", column, wide), x, zero), {x->rank() - 1}, true);
}

TensorRef takeKnown(Builder &b, const TensorRef &x, int64_t dim, const Shape &positions) {
  constexpr size_t maxPieces = 1024;
  Shape at = positions;
  for (int64_t &position : at) {
    position = position < 0 ? position + x->shape[dim] : position;
    if (position < 0 || position >= x->shape[dim])
      fail("an index of " + std::to_string(position) + " lies outside of dimension " + std::to_string(dim) +
           " of size " + std::to_string(x->shape[dim]));
  }
  int64_t step = at.size() > 1 ? at[1] - at[0] : 1;
  bool isEven = step > 0 && !at.empty();
  for (size_t i = 1; i < at.size(); ++i)
    isEven &= at[i] - at[i - 1] == step;
  if (isEven)
    return narrow(b, x, dim, at[0], static_cast<int64_t>(at.size()), step);
  if (at.size() > maxPieces || at.empty())
    throw Unsupported("an index by a list of " + std::to_string(at.size()) + " unevenly spaced positions");
  std::vector<TensorRef> pieces;
  for (int64_t position : at)
    pieces.push_back(narrow(b, x, dim, position, 1));
  return b.concat(pieces, dim);
}

namespace {

Value slice(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank()), total = x->shape.at(dim), step = call.integerOr("step", 1);
  auto wrap = [&](int64_t at) { return std::clamp(at < 0 ? at + total : at, int64_t(0), total); };
  int64_t start = wrap(call.integerOr("start", 0)), end = wrap(call.integerOr("end", total));
  if (step < 1)
    fail("aten::slice with step " + std::to_string(step));
  int64_t size = end > start ? (end - start + step - 1) / step : 0;
  return asView(x, narrow(call.b, x, dim, start, size, step));
}

Value narrowOp(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank()), start = call.integer("start"), size = call.integer("length");
  start = start < 0 ? start + x->shape.at(dim) : start;
  if (start < 0 || size < 0 || start + size > x->shape.at(dim))
    fail("aten::narrow from " + std::to_string(start) + " of length " + std::to_string(size) +
         " in dimension " + std::to_string(dim) + " of size " + std::to_string(x->shape[dim]));
  return asView(x, narrow(call.b, x, dim, start, size));
}

/// One position of a dimension, which goes away.
TensorRef selectOne(Builder &b, const TensorRef &x, int64_t dim, int64_t position) {
  int64_t at = position < 0 ? position + x->shape.at(dim) : position;
  if (at < 0 || at >= x->shape[dim])
    fail("position " + std::to_string(position) + " lies outside of dimension " + std::to_string(dim) +
         " of size " + std::to_string(x->shape[dim]));
  Shape shape = x->shape;
  shape.erase(shape.begin() + dim);
  return b.reshape(narrow(b, x, dim, at, 1), shape);
}

Value select(Call &call) {
  TensorRef x = call.tensor("self");
  return asView(x, selectOne(call.b, x, call.dim("dim", x->rank()), call.integer("index")));
}

Shape positionsOf(Builder &b, const TensorRef &index, int64_t size) {
  at::Tensor known = index->known;
  b.states.noteRead(known);
  if (known.scalar_type() == at::kBool) {
    if (known.dim() != 1 || known.size(0) != size)
      throw Unsupported("an index by a mask of more than one dimension");
    known = known.nonzero().reshape({-1});
  }
  known = known.to(at::kLong).contiguous();
  return Shape(known.data_ptr<int64_t>(), known.data_ptr<int64_t>() + known.numel());
}

/// x along `dim` at the positions that `index` names: its dimensions take the place of that one.
TensorRef take(Builder &b, const TensorRef &x, int64_t dim, const TensorRef &index) {
  if (index->isKnown()) {
    Shape positions = positionsOf(b, index, x->shape.at(dim)), shape = x->shape;
    TensorRef rows = takeKnown(b, x, dim, positions);
    Shape taken = index->type == at::kBool ? Shape{static_cast<int64_t>(positions.size())} : index->shape;
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, taken.begin(), taken.end());
    return b.reshape(rows, shape);
  }
  if (dim != 0 || x->rank() < 1 || !c10::isFloatingType(x->type) || index->type == at::kBool)
    throw Unsupported(
        "an index by a tensor that depends on the model's inputs, but for rows of a float tensor");
  int64_t rows = x->shape[0];
  TensorRef found = emitEmbedding(b, b.reshape(x, {rows, x->numel() / std::max<int64_t>(rows, 1)}), index);
  Shape shape = index->shape;
  shape.insert(shape.end(), x->shape.begin() + 1, x->shape.end());
  return b.reshape(found, shape);
}

/// x[..., index, ...]: one tensor index, and whole dimensions before and after it.
Value index(Call &call) {
  TensorRef x = call.tensor("self");
  auto *list = std::get_if<SequenceRef>(&call.value("indices"));
  if (!list)
    fail("aten::index without a list of indices");
  int64_t dim = -1;
  for (size_t i = 0; i < (*list)->items.size(); ++i)
    if (!isNone((*list)->items[i])) {
      if (dim >= 0)
        throw Unsupported("aten::index with more than one tensor");
      dim = static_cast<int64_t>(i);
    }
  if (dim < 0)
    return x;
  return take(call.b, x, dim, std::get<TensorRef>((*list)->items[dim]));
}

Value indexSelect(Call &call) {
  TensorRef x = call.tensor("self");
  return take(call.b, x, call.dim("dim", x->rank()), call.tensor("index"));
}

/// Along the last dimension with one index a row: a compare, a select and a sum, which one kernel does.
/// Another dimension is moved to the end first.
Value gather(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self"), index = call.tensor("index");
  int64_t dim = call.dim("dim", x->rank()), last = x->rank() - 1;
  if (x->rank() == 0 || index->rank() != x->rank() || index->shape[dim] != 1)
    throw Unsupported("aten::gather of more than one element of a row");
  for (int64_t i = 0; i < x->rank(); ++i)
    if (i != dim && index->shape[i] != x->shape[i]) {
      if (index->shape[i] > x->shape[i])
        fail("aten::gather with an index of shape " + spellList(index->shape) + " into " +
             spellList(x->shape));
      x = narrow(b, x, i, 0, index->shape[i]);
    }
  if (dim == last)
    return pickLast(b, x, index);
  Shape perm(x->rank());
  for (int64_t i = 0; i < x->rank(); ++i)
    perm[i] = i;
  std::swap(perm[dim], perm[last]);
  return b.transpose(pickLast(b, b.transpose(x, perm), b.transpose(index, perm)), perm);
}

//===----------------------------------------------------------------------===//
// Triangles, rolls, paddings
//===----------------------------------------------------------------------===//

/// Keeps what lies on one side of a diagonal of the last two dimensions.
template <bool lower>
Value triangle(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  if (x->rank() < 2)
    fail(call.schema.name() + " of a tensor of rank " + std::to_string(x->rank()));
  int64_t diagonal = call.integerOr("diagonal", 0);
  TensorRef row = b.iota(x->rank() - 2, diagonal, 1, x->shape, at::kLong);
  TensorRef column = b.iota(x->rank() - 1, 0, 1, x->shape, at::kLong);
  return b.select(b.compare(lower ? "ge" : "le", row, column), x, b.splat(0, x->shape, x->type));
}

Value roll(Call &call) {
  TensorRef x = call.tensor("self");
  const Shape shape = x->shape;
  Shape shifts = call.integers("shifts"), dims = call.integers("dims");
  if (dims.empty() && shifts.size() == 1) {
    x = call.b.reshape(x, {x->numel()});
    dims = {0};
  }
  if (dims.size() != shifts.size())
    fail("aten::roll by " + spellList(shifts) + " of dimensions " + spellList(dims));
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = dims[i] < 0 ? dims[i] + x->rank() : dims[i], size = x->shape.at(dim);
    int64_t shift = size ? ((shifts[i] % size) + size) % size : 0;
    if (shift)
      x = call.b.concat(
          {narrow(call.b, x, dim, size - shift, shift), narrow(call.b, x, dim, 0, size - shift)}, dim);
  }
  return call.b.reshape(x, shape);
}

/// Pads with a constant; negative amounts cut. `pad` counts from the last dimension.
Value padConstant(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self");
  if (call.has("mode") && call.text("mode") != "constant")
    return padByMode(call, call.text("mode"));
  Shape amounts = call.integers("pad");
  double value = call.numberOr("value", 0);
  for (size_t i = 0; i + 1 < amounts.size(); i += 2) {
    int64_t dim = x->rank() - 1 - static_cast<int64_t>(i / 2), before = amounts[i], after = amounts[i + 1];
    if (dim < 0)
      fail("aten::pad of more dimensions than the tensor has");
    int64_t cutBefore = std::max<int64_t>(-before, 0), cutAfter = std::max<int64_t>(-after, 0);
    if (cutBefore + cutAfter > x->shape[dim])
      fail("aten::pad cuts more than dimension " + std::to_string(dim) + " has");
    x = narrow(b, x, dim, cutBefore, x->shape[dim] - cutBefore - cutAfter);
    Shape front = x->shape, back = x->shape;
    front[dim] = std::max<int64_t>(before, 0);
    back[dim] = std::max<int64_t>(after, 0);
    std::vector<TensorRef> parts;
    if (front[dim])
      parts.push_back(b.splat(value, front, x->type));
    parts.push_back(x);
    if (back[dim])
      parts.push_back(b.splat(value, back, x->type));
    x = b.concat(parts, dim);
  }
  return x;
}

constexpr Operator operators[] = {
    {"aten::slice", slice},
    {"aten::narrow", narrowOp},
    {"aten::select", select},
    {"aten::index", index},
    {"aten::index_select", indexSelect},
    {"aten::gather", gather},
    {"aten::tril", triangle<true>},
    {"aten::triu", triangle<false>},
    {"aten::roll", roll},
    {"aten::constant_pad_nd", padConstant},
    {"aten::pad", padConstant},
};

} // namespace

OperatorList indexingOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
