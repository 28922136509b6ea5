//===- Layout.cpp - Views, repetitions, copies and casts ------------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>
#include <numeric>

namespace ds::ts {

TensorRef unsqueeze(Builder &b, const TensorRef &x, int64_t dim) {
  Shape shape = x->shape;
  shape.insert(shape.begin() + dim, 1);
  return b.reshape(x, shape);
}

namespace {

//===----------------------------------------------------------------------===//
// The same elements in another shape
//===----------------------------------------------------------------------===//

/// `shape` with its -1 worked out; a failure where the elements do not fit.
Shape inferShape(const TensorRef &x, Shape shape, const std::string &op) {
  int64_t count = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
      fail(op + " asks for shape " + spellList(shape));
  if (open >= 0 && count > 0 && x->numel() % count == 0)
    shape[open] = x->numel() / count;
  else if (open >= 0 || count != x->numel())
    fail(op + " asks for shape " + spellList(shape) + " of a tensor of shape " + spellList(x->shape),
         "check the shapes given by --input");
  return shape;
}

Value viewAs(const TensorRef &x, TensorRef result) { return asView(x, std::move(result)); }

Value view(Call &call) {
  TensorRef x = call.tensor("self");
  if (!call.has("size") && !call.has("shape"))
    throw Unsupported(call.schema.name() + " to another element type");
  Shape shape = call.integers(call.has("size") ? "size" : "shape");
  return viewAs(x, call.b.reshape(x, inferShape(x, shape, call.schema.name())));
}

Value viewLike(Call &call) {
  TensorRef x = call.tensor("self");
  return viewAs(x, call.b.reshape(x, inferShape(x, call.tensor("other")->shape, call.schema.name())));
}

Value flatten(Call &call) {
  TensorRef x = call.tensor("self");
  if (x->rank() == 0)
    return viewAs(x, call.b.reshape(x, {1}));
  int64_t first = call.dim("start_dim", x->rank()), last = call.dim("end_dim", x->rank());
  if (first > last)
    fail("aten::flatten from dimension " + std::to_string(first) + " to " + std::to_string(last));
  Shape shape(x->shape.begin(), x->shape.begin() + first);
  shape.push_back(std::accumulate(x->shape.begin() + first, x->shape.begin() + last + 1, int64_t(1),
                                  std::multiplies<int64_t>()));
  shape.insert(shape.end(), x->shape.begin() + last + 1, x->shape.end());
  return viewAs(x, call.b.reshape(x, shape));
}

Value unflatten(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank());
  Shape sizes = call.integers("sizes"), shape = x->shape;
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
  return viewAs(x, call.b.reshape(x, inferShape(x, shape, call.schema.name())));
}

Value unsqueezeOp(Call &call) {
  TensorRef x = call.tensor("self");
  return viewAs(x, unsqueeze(call.b, x, call.dim("dim", x->rank() + 1)));
}

Value squeeze(Call &call) {
  TensorRef x = call.tensor("self");
  Shape dims = call.dims("dim", x->rank()), shape;
  for (int64_t i = 0; i < x->rank(); ++i)
    if (x->shape[i] != 1 || !std::binary_search(dims.begin(), dims.end(), i))
      shape.push_back(x->shape[i]);
  return viewAs(x, call.b.reshape(x, shape));
}

//===----------------------------------------------------------------------===//
// Orders and repetitions
//===----------------------------------------------------------------------===//

Shape identity(int64_t rank) {
  Shape perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  return perm;
}

/// x in another order of dimensions; remembers a swap of the last two, which a matrix product absorbs.
Value permuteTo(Call &call, const TensorRef &x, const Shape &perm) {
  TensorRef result = call.b.transpose(x, perm);
  Shape swapped = identity(x->rank());
  if (x->rank() >= 2)
    std::swap(swapped[x->rank() - 1], swapped[x->rank() - 2]);
  if (perm == swapped && result != x)
    result->transposed = x;
  return viewAs(x, result);
}

Value permute(Call &call) {
  TensorRef x = call.tensor("self");
  Shape perm = call.integers("dims");
  for (int64_t &dim : perm)
    dim = dim < 0 ? dim + x->rank() : dim;
  Shape sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != identity(x->rank()))
    fail("aten::permute by " + spellList(perm) + " of a tensor of rank " + std::to_string(x->rank()));
  return permuteTo(call, x, perm);
}

Value transpose(Call &call) {
  TensorRef x = call.tensor("self");
  Shape perm = identity(x->rank());
  if (x->rank() > 0)
    std::swap(perm[call.dim(call.has("dim0") ? "dim0" : "axis0", x->rank())],
              perm[call.dim(call.has("dim1") ? "dim1" : "axis1", x->rank())]);
  return permuteTo(call, x, perm);
}

Value transposeMatrix(Call &call) {
  TensorRef x = call.tensor("self");
  return x->rank() < 2 ? Value(x) : permuteTo(call, x, {1, 0});
}

/// .T reverses all dimensions, .mT swaps the last two.
Value reverseDims(Call &call) {
  TensorRef x = call.tensor("self");
  Shape perm = identity(x->rank());
  std::reverse(perm.begin(), perm.end());
  return permuteTo(call, x, perm);
}

Value swapLastDims(Call &call) {
  TensorRef x = call.tensor("self");
  Shape perm = identity(x->rank());
  std::swap(perm.at(x->rank() - 1), perm.at(x->rank() - 2));
  return permuteTo(call, x, perm);
}

Value moveDims(Call &call) {
  TensorRef x = call.tensor("self");
  Shape from = call.integers("source"), to = call.integers("destination");
  Shape perm(x->rank(), -1);
  std::vector<bool> moved(x->rank());
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t source = from[i] < 0 ? from[i] + x->rank() : from[i],
            target = to.at(i) < 0 ? to[i] + x->rank() : to[i];
    perm.at(target) = source;
    moved.at(source) = true;
  }
  int64_t next = 0;
  for (int64_t &dim : perm)
    if (dim < 0) {
      while (moved[next])
        ++next;
      dim = next++;
    }
  return permuteTo(call, x, perm);
}

/// Sizes of -1 in expand keep what is there.
Value expand(Call &call) {
  TensorRef x = call.tensor("self");
  Shape shape = call.integers("size");
  auto shift = static_cast<int64_t>(shape.size()) - x->rank();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == -1) {
      if (static_cast<int64_t>(i) < shift)
        fail("aten::expand asks for -1 in a new dimension");
      shape[i] = x->shape[static_cast<int64_t>(i) - shift];
    }
  return viewAs(x, broadcastTo(call.b, x, shape));
}

Value expandAs(Call &call) {
  TensorRef x = call.tensor("self");
  return viewAs(x, broadcastTo(call.b, x, call.tensor("other")->shape));
}

Value broadcastTensors(Call &call) {
  std::vector<TensorRef> all = call.tensors("tensors");
  Shape shape = broadcastShapes(all);
  std::vector<Value> result;
  for (const TensorRef &x : all)
    result.push_back(viewAs(x, broadcastTo(call.b, x, shape)));
  return makeList(std::move(result));
}

/// Repeats each whole dimension: [a, b] by [2, 3] is [1, a, 1, b] broadcast to [2, a, 3, b], reshaped.
Value repeat(Call &call) {
  TensorRef x = call.tensor("self");
  Shape times = call.integers(call.has("repeats") ? "repeats" : "dims"), shape = x->shape;
  if (times.size() < shape.size() && call.schema.name() == "aten::tile")
    times.insert(times.begin(), shape.size() - times.size(), 1);
  if (times.size() < shape.size())
    fail("aten::repeat with " + spellList(times) + " of a tensor of rank " + std::to_string(x->rank()));
  shape.insert(shape.begin(), times.size() - shape.size(), 1);
  Shape apart, repeated, result;
  for (size_t i = 0; i < shape.size(); ++i) {
    apart.insert(apart.end(), {1, shape[i]});
    repeated.insert(repeated.end(), {times[i], shape[i]});
    result.push_back(times[i] * shape[i]);
  }
  return call.b.reshape(broadcastTo(call.b, call.b.reshape(x, apart), repeated), result);
}

Value repeatInterleave(Call &call) {
  TensorRef x = call.tensor("self");
  if (!call.isNumber("repeats"))
    throw Unsupported("aten::repeat_interleave with a tensor of repeats");
  int64_t times = call.integer("repeats");
  if (!call.has("dim"))
    x = call.b.reshape(x, {x->numel()});
  int64_t dim = call.has("dim") ? call.dim("dim", x->rank()) : 0;
  Shape repeated = x->shape, result = x->shape;
  repeated.insert(repeated.begin() + dim + 1, times);
  result[dim] *= times;
  return call.b.reshape(broadcastTo(call.b, unsqueeze(call.b, x, dim + 1), repeated), result);
}

//===----------------------------------------------------------------------===//
// Copies and casts
//===----------------------------------------------------------------------===//

/// A name of its own: a write in place to the copy leaves the source as it is.
Value clone(Call &call) {
  TensorRef x = call.tensor("self");
  return makeNamed(call.b.use(x), x->shape, x->type);
}

Value same(Call &call) { return call.tensor("self"); }

/// Inputs have no gradient, and what is computed has one already. A parameter would have to change its kind.
Value setRequiresGrad(Call &call) {
  TensorRef x = call.tensor("self");
  if (x->state || (!call.flag("requires_grad") && c10::isFloatingType(x->type)))
    throw Unsupported("aten::requires_grad_ of a parameter, or that stops gradients");
  return x;
}

/// Parameters and integers are known to have a gradient or not; for other tensors it depends on what is
/// frozen.
Value requiresGrad(Call &call) {
  TensorRef x = call.tensor("a");
  if (!x->state && c10::isFloatingType(x->type))
    throw Unsupported("prim::requires_grad of a tensor that is not a parameter");
  return c10::IValue(x->state && x->state->trainable);
}

Value to(Call &call) {
  TensorRef x = call.tensor("self");
  at::ScalarType type = call.has("other") ? call.tensor("other")->type : call.type("dtype", x->type);
  TensorRef result = call.b.convert(x, type);
  return result == x && call.flag("copy") ? clone(call) : Value(result);
}

Value typeAs(Call &call) { return call.b.convert(call.tensor("self"), call.tensor("other")->type); }

/// A view through which no gradient passes; integers have none to begin with.
Value detach(Call &call) {
  TensorRef x = call.tensor(call.has("self") ? "self" : "a");
  return c10::isFloatingType(x->type) ? asView(x, emitDetach(call.b, x)) : x;
}

constexpr Operator operators[] = {
    {"aten::view", view},
    {"aten::reshape", view},
    {"aten::_unsafe_view", view},
    {"aten::_reshape_alias", view},
    {"aten::view_as", viewLike},
    {"aten::reshape_as", viewLike},
    {"aten::flatten", flatten},
    {"aten::unflatten", unflatten},
    {"aten::unsqueeze", unsqueezeOp},
    {"aten::squeeze", squeeze},
    {"aten::permute", permute},
    {"aten::transpose", transpose},
    {"aten::t", transposeMatrix},
    {"aten::numpy_T", reverseDims},
    {"aten::mT", swapLastDims},
    {"aten::movedim", moveDims},
    {"aten::expand", expand},
    {"aten::broadcast_to", expand},
    {"aten::expand_as", expandAs},
    {"aten::broadcast_tensors", broadcastTensors},
    {"aten::repeat", repeat},
    {"aten::tile", repeat},
    {"aten::repeat_interleave", repeatInterleave},
    {"aten::clone", clone},
    {"aten::contiguous", same},
    {"aten::alias", same},
    {"aten::cpu", same},
    {"aten::requires_grad", setRequiresGrad},
    {"prim::requires_grad", requiresGrad},
    {"prim::data", detach},
    {"aten::to", to},
    {"aten::_to_copy", to},
    {"aten::type_as", typeAs},
    {"aten::detach", detach},
};

} // namespace

OperatorList layoutOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
