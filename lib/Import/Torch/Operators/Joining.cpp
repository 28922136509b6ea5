//===- Joining.cpp - Joins and cuts ---------------------------------------------===//

#include "../Operators.h"

#include <algorithm>
#include <numeric>

namespace ds::ts {

namespace {

/// Joins along `dim`, which may count from the back.
Value join(Call &call, const std::vector<TensorRef> &all, int64_t dim) {
  std::vector<TensorRef> parts;
  at::ScalarType type = promote(all);
  for (const TensorRef &part : all)
    if (part->shape != Shape{0}) // PyTorch lets an empty vector stand beside anything.
      parts.push_back(call.b.convert(part, type));
  if (parts.empty())
    return all.at(0);
  dim = dim < 0 ? dim + parts[0]->rank() : dim;
  for (const TensorRef &part : parts) {
    Shape expected = parts[0]->shape;
    bool fits = part->rank() == parts[0]->rank() && dim >= 0 && dim < part->rank();
    if (fits)
      expected[dim] = part->shape[dim];
    if (!fits || part->shape != expected)
      fail(call.schema.name() + " joins shapes " + spellList(parts[0]->shape) + " and " +
           spellList(part->shape) + " along dimension " + std::to_string(dim));
  }
  return call.b.concat(parts, dim);
}

Value cat(Call &call) { return join(call, call.tensors("tensors"), call.integer("dim")); }

/// Side by side: along the first dimension for vectors, else along the second.
Value hstack(Call &call) {
  std::vector<TensorRef> parts = call.tensors("tensors");
  return join(call, parts, parts.at(0)->rank() < 2 ? 0 : 1);
}

/// One above the other; a vector is a row.
Value vstack(Call &call) {
  std::vector<TensorRef> parts = call.tensors("tensors");
  for (TensorRef &part : parts)
    if (part->rank() < 2)
      part = call.b.reshape(part, {1, part->numel()});
  return join(call, parts, 0);
}

Value stack(Call &call) {
  std::vector<TensorRef> parts = call.tensors("tensors");
  at::ScalarType type = promote(parts);
  int64_t dim = call.dim("dim", parts.at(0)->rank() + 1);
  for (TensorRef &part : parts) {
    if (part->shape != parts[0]->shape && &part != &parts[0])
      fail("aten::stack of shapes " + spellList(parts[0]->shape) + " and " + spellList(part->shape));
    part = call.b.convert(part, type);
  }
  for (TensorRef &part : parts)
    part = unsqueeze(call.b, part, dim);
  return call.b.concat(parts, dim);
}

Value asViews(const TensorRef &x, const std::vector<TensorRef> &parts) {
  std::vector<Value> result;
  for (const TensorRef &part : parts)
    result.push_back(asView(x, part));
  return makeList(std::move(result));
}

/// Pieces of `size`, the last of what is left.
Shape cutEvenly(int64_t total, int64_t size) {
  Shape sizes;
  for (int64_t begin = 0; begin < total; begin += size)
    sizes.push_back(std::min(size, total - begin));
  return sizes.empty() ? Shape{0} : sizes;
}

Value splitInto(Call &call, const TensorRef &x, int64_t dim, const Shape &sizes) {
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != x->shape.at(dim))
    fail(call.schema.name() + " cuts dimension " + std::to_string(dim) + " of size " +
         std::to_string(x->shape[dim]) + " into " + spellList(sizes));
  return asViews(x, call.b.split(x, dim, sizes));
}

Value split(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank());
  const char *name = call.has("split_sizes") ? "split_sizes" : "split_size";
  if (std::holds_alternative<SequenceRef>(call.value(name)))
    return splitInto(call, x, dim, call.integers(name));
  int64_t size = call.integer(name);
  if (size < 1)
    fail("aten::split into pieces of " + std::to_string(size));
  return splitInto(call, x, dim, cutEvenly(x->shape.at(dim), size));
}

Value chunk(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank()), chunks = call.integer("chunks");
  if (chunks < 1)
    fail("aten::chunk into " + std::to_string(chunks) + " pieces");
  int64_t size = std::max<int64_t>(1, (x->shape.at(dim) + chunks - 1) / chunks);
  return splitInto(call, x, dim, cutEvenly(x->shape[dim], size));
}

Value tensorSplit(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank()), total = x->shape.at(dim);
  Shape sizes;
  if (call.has("indices")) {
    int64_t begin = 0;
    for (int64_t end : call.integers("indices")) {
      end = std::clamp(end < 0 ? end + total : end, begin, total);
      sizes.push_back(end - begin);
      begin = end;
    }
    sizes.push_back(total - begin);
  } else {
    int64_t sections = call.integer("sections");
    for (int64_t i = 0; i < sections; ++i)
      sizes.push_back(total / sections + (i < total % sections ? 1 : 0));
  }
  return splitInto(call, x, dim, sizes);
}

Value unbind(Call &call) {
  TensorRef x = call.tensor("self");
  int64_t dim = call.dim("dim", x->rank());
  Shape shape = x->shape;
  shape.erase(shape.begin() + dim);
  std::vector<TensorRef> parts = call.b.split(x, dim, Shape(x->shape.at(dim), 1));
  for (TensorRef &part : parts)
    part = call.b.reshape(part, shape);
  return asViews(x, parts);
}

constexpr Operator operators[] = {
    {"aten::cat", cat},
    {"aten::hstack", hstack},
    {"aten::vstack", vstack},
    {"aten::stack", stack},
    {"aten::split", split},
    {"aten::unsafe_split", split},
    {"aten::split_with_sizes", split},
    {"aten::unsafe_split_with_sizes", split},
    {"aten::chunk", chunk},
    {"aten::unsafe_chunk", chunk},
    {"aten::tensor_split", tensorSplit},
    {"aten::unbind", unbind},
};

} // namespace

OperatorList joiningOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
