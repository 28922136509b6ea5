//===- Builder.cpp - Writes ops on elements and shapes as MLIR text ---------------===//

#include "Builder.h"
#include "Failure.h"

#include <algorithm>
#include <cstring>

namespace ds::ts {

std::string Builder::use(const TensorRef &tensor) {
  if (tensor->isStale)
    throw Unsupported("a read of a tensor after a write in place through an alias of it");
  if (tensor->state)
    return text.argument(*tensor->state);
  if (!tensor->isKnown())
    return tensor->name;
  const at::Tensor &known = tensor->known;
  const void *key = known.unsafeGetTensorImpl();
  auto found = written.find(key);
  if (found == written.end() || found->second.second.first != known._version()) {
    written.erase(key);
    TensorRef op = materialize(known);
    found = written.emplace(key, std::make_pair(known, std::make_pair(known._version(), op))).first;
  }
  return found->second.second.second->name;
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

TensorRef Builder::unary(const char *op, const TensorRef &x) {
  return text.emit(std::string("ds.") + op + " " + use(x) + " : " + typeOf(x), x->shape, x->type);
}

TensorRef Builder::binary(const char *op, const TensorRef &a, const TensorRef &b) {
  std::string lhs = use(a), rhs = use(b);
  return text.emit(std::string("ds.") + op + " " + lhs + ", " + rhs + " : " + typeOf(a), a->shape, a->type);
}

TensorRef Builder::compare(const char *predicate, const TensorRef &a, const TensorRef &b) {
  std::string lhs = use(a), rhs = use(b);
  return text.emit(std::string("ds.compare ") + predicate + " " + lhs + ", " + rhs + " : " + typeOf(a),
                   a->shape, at::kBool);
}

TensorRef Builder::select(const TensorRef &condition, const TensorRef &onTrue, const TensorRef &onFalse) {
  std::string c = use(condition), a = use(onTrue), b = use(onFalse);
  return text.emit("ds.select " + c + ", " + a + ", " + b + " : " + typeOf(onTrue), onTrue->shape,
                   onTrue->type);
}

TensorRef Builder::convert(const TensorRef &x, at::ScalarType type) {
  if (x->type == type)
    return x;
  if (x->isKnown()) {
    states.noteRead(x->known);
    return makeKnown(x->known.to(type));
  }
  return text.emit("ds.convert " + use(x) + " : " + typeOf(x) + " -> " + spell(x->shape, type), x->shape,
                   type);
}

//===----------------------------------------------------------------------===//
// Ops that move, repeat, make or combine elements
//===----------------------------------------------------------------------===//

TensorRef Builder::splat(const c10::Scalar &value, const Shape &shape, at::ScalarType type) {
  return text.emit("ds.constant dense<" + spellNumber(value, type) + "> : " + spell(shape, type), shape,
                   type);
}

TensorRef Builder::iota(int64_t dim, int64_t start, int64_t step, const Shape &shape, at::ScalarType type) {
  return text.emit("ds.iota dim " + std::to_string(dim) + " start " + std::to_string(start) + " step " +
                       std::to_string(step) + " : " + spell(shape, type),
                   shape, type);
}

TensorRef Builder::broadcast(const TensorRef &x, const Shape &dims, const Shape &shape) {
  return text.emit("ds.broadcast " + use(x) + " dims " + spellList(dims) + " : " + typeOf(x) + " -> " +
                       spell(shape, x->type),
                   shape, x->type);
}

TensorRef Builder::reshape(const TensorRef &x, const Shape &shape) {
  if (x->shape == shape)
    return x;
  return text.emit("ds.reshape " + use(x) + " : " + typeOf(x) + " -> " + spell(shape, x->type), shape,
                   x->type);
}

TensorRef Builder::transpose(const TensorRef &x, const Shape &perm) {
  bool isIdentity = true;
  Shape shape;
  for (size_t i = 0; i < perm.size(); ++i) {
    isIdentity &= perm[i] == static_cast<int64_t>(i);
    shape.push_back(x->shape[perm[i]]);
  }
  if (isIdentity)
    return x;
  return text.emit("ds.transpose " + use(x) + " perm " + spellList(perm) + " : " + typeOf(x) + " -> " +
                       spell(shape, x->type),
                   shape, x->type);
}

TensorRef Builder::slice(const TensorRef &x, const Shape &offsets, const Shape &sizes, const Shape &strides) {
  if (sizes == x->shape)
    return x;
  return text.emit("ds.slice " + use(x) + " offsets " + spellList(offsets) + " strides " +
                       spellList(strides) + " : " + typeOf(x) + " -> " + spell(sizes, x->type),
                   sizes, x->type);
}

TensorRef Builder::pad(const TensorRef &x, const Shape &offsets, const Shape &shape) {
  if (x->shape == shape)
    return x;
  Shape strides(shape.size(), 1);
  return text.emit("ds.pad " + use(x) + " offsets " + spellList(offsets) + " strides " + spellList(strides) +
                       " : " + typeOf(x) + " -> " + spell(shape, x->type),
                   shape, x->type);
}

TensorRef Builder::concat(const std::vector<TensorRef> &parts, int64_t dim) {
  if (parts.size() == 1)
    return parts.front();
  std::string names, types;
  Shape shape = parts.front()->shape;
  shape[dim] = 0;
  for (const TensorRef &part : parts) {
    names += (names.empty() ? "" : ", ") + use(part);
    types += (types.empty() ? "" : ", ") + typeOf(part);
    shape[dim] += part->shape[dim];
  }
  at::ScalarType type = parts.front()->type;
  return text.emit("ds.concat " + names + " dim " + std::to_string(dim) + " : " + types + " -> " +
                       spell(shape, type),
                   shape, type);
}

std::vector<TensorRef> Builder::split(const TensorRef &x, int64_t dim, const Shape &sizes) {
  if (sizes.size() == 1)
    return {x};
  std::vector<std::pair<Shape, at::ScalarType>> types;
  std::string spelled;
  for (int64_t size : sizes) {
    Shape shape = x->shape;
    shape[dim] = size;
    spelled += (spelled.empty() ? "" : ", ") + spell(shape, x->type);
    types.emplace_back(shape, x->type);
  }
  return text.emitMany(
      "ds.split " + use(x) + " dim " + std::to_string(dim) + " : " + typeOf(x) + " -> " + spelled, types);
}

TensorRef Builder::reduce(const char *kind, const TensorRef &x, const Shape &dims) {
  if (dims.empty())
    return x;
  Shape shape;
  for (int64_t i = 0; i < x->rank(); ++i)
    if (std::find(dims.begin(), dims.end(), i) == dims.end())
      shape.push_back(x->shape[i]);
  return text.emit(std::string("ds.reduce ") + kind + " " + use(x) + " dims " + spellList(dims) + " : " +
                       typeOf(x) + " -> " + spell(shape, x->type),
                   shape, x->type);
}

//===----------------------------------------------------------------------===//
// What several operators need
//===----------------------------------------------------------------------===//

TensorRef broadcastTo(Builder &b, const TensorRef &x, const Shape &shape) {
  if (x->shape == shape)
    return x;
  int64_t shift = static_cast<int64_t>(shape.size()) - x->rank();
  bool fits = shift >= 0;
  Shape dims;
  for (int64_t i = 0; fits && i < x->rank(); ++i) {
    fits = x->shape[i] == 1 || x->shape[i] == shape[i + shift];
    dims.push_back(i + shift);
  }
  if (!fits)
    fail("a tensor of shape " + spellList(x->shape) + " does not broadcast to " + spellList(shape));
  if (auto value = splatValue(x))
    return b.splat(*value, shape, x->type);
  return b.broadcast(x, dims, shape);
}

void overwrite(Builder &b, const TensorRef &target, const TensorRef &value) {
  std::string name = b.use(b.convert(value, target->type));
  if (target->storage)
    for (auto &member : target->storage->members)
      if (auto alias = member.lock(); alias && alias != target)
        alias->isStale = true;
  *target = *makeNamed(name, value->shape, target->type);
  target->storage = std::make_shared<Storage>();
  target->storage->members.push_back(target);
}

std::optional<c10::Scalar> splatValue(const TensorRef &x) {
  if (!x->isKnown() || x->known.numel() == 0)
    return std::nullopt;
  at::Tensor flat = x->known;
  for (int64_t i = 0; i < flat.dim(); ++i) // An expanded tensor is no larger than what it repeats.
    if (flat.stride(i) == 0)
      flat = flat.narrow(i, 0, 1);
  flat = flat.contiguous();
  auto *data = static_cast<const char *>(flat.data_ptr());
  size_t step = flat.element_size();
  if (std::memcmp(data, data + step, flat.nbytes() - step) != 0)
    return std::nullopt;
  return flat.reshape({-1})[0].item();
}

} // namespace ds::ts
