//===- Factories.cpp - Tensors that are made, and questions about tensors -------===//
//
// Almost all of them are evaluated by LibTorch; what is left has an argument that is not known.
//
//===---------------------------------------------------------------------------===//

#include "../Operators.h"

#include <torch/csrc/jit/ir/ir.h>

namespace ds::ts {

namespace {

/// len() of a list whose elements are not known.
Value length(Call &call) {
  if (auto *sequence = std::get_if<SequenceRef>(&call.arguments[0]))
    return c10::IValue(static_cast<int64_t>((*sequence)->items.size()));
  if (auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0]))
    return c10::IValue(static_cast<int64_t>((*dictionary)->items.size()));
  throw Unsupported("len of a value that is not known");
}

Value contains(Call &call) {
  auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0]);
  auto *key = std::get_if<c10::IValue>(&call.arguments[1]);
  if (!dictionary || !key)
    throw Unsupported("a test for membership that is not known");
  for (const auto &item : (*dictionary)->items)
    if (auto *known = std::get_if<c10::IValue>(&item.first); known && *known == *key)
      return c10::IValue(true);
  return c10::IValue(false);
}

/// The type that isinstance asks about is known from the kind of value.
Value isInstance(Call &call) {
  bool isTensor = std::holds_alternative<TensorRef>(call.arguments[0]);
  for (const c10::TypePtr &type : call.node->tys(c10::attr::types)) {
    if (isTensor && type->kind() == c10::TypeKind::TensorType)
      return c10::IValue(true);
    if (call.node->input(0)->type()->isSubtypeOf(*type))
      return c10::IValue(true);
  }
  return c10::IValue(false);
}

/// tensor.new_full and friends with a fill value that is known are evaluated; here it is not.
Value numToTensor(Call &call) { return call.tensor("a"); }

/// Memory without contents: zeros, so that the import is the same each time.
Value empty(Call &call) {
  Shape shape = call.has("size") ? call.integers("size") : call.tensor("self")->shape;
  at::ScalarType type = call.type("dtype", call.has("self") ? call.tensor("self")->type : at::kFloat);
  return makeKnown(at::zeros(shape, at::TensorOptions().dtype(type)));
}

Value oneHot(Call &call) {
  TensorRef ids = call.tensor("self");
  int64_t classes = call.integer("num_classes");
  if (classes < 1)
    throw Unsupported("aten::one_hot without the number of classes");
  Shape shape = ids->shape;
  shape.push_back(classes);
  TensorRef column = call.b.iota(ids->rank(), 0, 1, shape, ids->type);
  TensorRef repeated = broadcastTo(call.b, unsqueeze(call.b, ids, ids->rank()), shape);
  return call.b.convert(call.b.compare("eq", column, repeated), at::kLong);
}

/// A text of a tensor's elements, which only a message shows.
Value formatText(Call &) { return Unknown{"a text made of what depends on the model's inputs"}; }

constexpr Operator operators[] = {
    {"aten::len", length},
    {"aten::__contains__", contains},
    {"prim::isinstance", isInstance},
    {"prim::NumToTensor", numToTensor},
    {"aten::empty", empty},
    {"aten::empty_like", empty},
    {"aten::new_empty", empty},
    {"aten::one_hot", oneHot},
    {"aten::format", formatText},
    {"aten::percentFormat", formatText},
};

} // namespace

OperatorList factoryOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
