//===- Operators.cpp - The table of importable operators ------------------------===//

#include "Operators.h"

#include <ATen/native/TypeProperties.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

namespace ds::ts {

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

const Value &Call::value(std::string_view name) const {
  static const Value absent = c10::IValue();
  const size_t count = std::min(arguments.size(), schema.arguments().size()); // a vararg has more
  for (size_t i = 0; i < count; ++i)
    if (schema.arguments()[i].name() == name)
      return arguments[i];
  return absent;
}

TensorRef Call::tensor(std::string_view name) const {
  const Value &held = value(name);
  if (auto *tensor = std::get_if<TensorRef>(&held))
    return *tensor;
  if (auto *known = std::get_if<c10::IValue>(&held); known && known->isScalar())
    return makeScalar(known->toScalar());
  fail("argument '" + std::string(name) + "' of " + schema.name() + " is not a tensor");
}

std::vector<TensorRef> Call::tensors(std::string_view name) const {
  auto *sequence = std::get_if<SequenceRef>(&value(name));
  if (!sequence)
    fail("argument '" + std::string(name) + "' of " + schema.name() + " is not a list of tensors");
  std::vector<TensorRef> result;
  for (const Value &item : (*sequence)->items) {
    auto *tensor = std::get_if<TensorRef>(&item);
    if (!tensor)
      throw Unsupported(schema.name() + " with a list that holds other things than tensors");
    result.push_back(*tensor);
  }
  return result;
}

/// The number that a value holds: an int, float or bool, or a tensor of one known element.
static c10::Scalar toScalar(Builder &b, const Value &value, const std::string &what) {
  if (auto *known = std::get_if<c10::IValue>(&value))
    if (known->isScalar())
      return known->toScalar();
  if (auto *tensor = std::get_if<TensorRef>(&value)) {
    if ((*tensor)->isKnown() && (*tensor)->numel() == 1) {
      b.states.noteRead((*tensor)->known);
      return (*tensor)->known.item();
    }
    throw Unsupported(what + " that is computed from the model's inputs");
  }
  fail("expects a number for " + what);
}

c10::Scalar Call::scalar(std::string_view name) const {
  return toScalar(b, value(name), schema.name() + " with '" + std::string(name) + "'");
}

int64_t Call::integer(std::string_view name) const { return scalar(name).to<int64_t>(); }
double Call::number(std::string_view name) const { return scalar(name).to<double>(); }

Shape Call::integers(std::string_view name) const {
  auto *sequence = std::get_if<SequenceRef>(&value(name));
  if (!sequence)
    return {integer(name)};
  Shape result;
  for (const Value &item : (*sequence)->items)
    result.push_back(toScalar(b, item, schema.name() + " with '" + std::string(name) + "'").to<int64_t>());
  return result;
}

std::string Call::text(std::string_view name) const {
  auto *known = std::get_if<c10::IValue>(&value(name));
  return known && known->isString() ? known->toStringRef() : "";
}

at::ScalarType Call::type(std::string_view name, at::ScalarType other) const {
  return has(name) ? static_cast<at::ScalarType>(integer(name)) : other;
}

static int64_t wrapDim(int64_t dim, int64_t rank, const std::string &op) {
  int64_t limit = std::max<int64_t>(rank, 1);
  if (dim < -limit || dim >= limit)
    fail(op + " names dimension " + std::to_string(dim) + " of a tensor of rank " + std::to_string(rank));
  return dim < 0 ? dim + limit : dim;
}

int64_t Call::dim(std::string_view name, int64_t rank) const {
  return wrapDim(integer(name), rank, schema.name());
}

Shape Call::dims(std::string_view name, int64_t rank) const {
  Shape result = has(name) ? integers(name) : Shape();
  for (int64_t &dim : result)
    dim = wrapDim(dim, rank, schema.name());
  if (result.empty())
    for (int64_t i = 0; i < rank; ++i)
      result.push_back(i);
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    fail(schema.name() + " names a dimension twice");
  return rank == 0 ? Shape() : result;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

using Table = std::unordered_map<std::string, Handler>;

static Table makeTable(const std::vector<OperatorList> &lists) {
  Table table;
  for (OperatorList list : lists)
    for (size_t i = 0; i < list.count; ++i)
      table.emplace(list.begin[i].name, list.begin[i].handler);
  return table;
}

static const Table &tensorOperators() {
  static const Table table =
      makeTable({arithmeticOperators(), activationOperators(), convolutionOperators(), factoryOperators(),
                 layoutOperators(), joiningOperators(), indexingOperators(), linearOperators(),
                 lossOperators(), networkOperators(), normOperators(), poolingOperators(),
                 reductionOperators(), resizingOperators(), scanOperators()});
  return table;
}

static const Table &structureOperators() {
  static const Table table = makeTable({containerOperators()});
  return table;
}

static Handler find(const Table &table, const std::string &name) {
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

Handler findOperator(const std::string &name) { return find(tensorOperators(), name); }
Handler findContainerOperator(const std::string &name) { return find(structureOperators(), name); }

std::vector<std::string> operatorNames() {
  std::vector<std::string> names;
  for (const Table *table : {&tensorOperators(), &structureOperators()})
    for (const auto &entry : *table)
      names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

bool readsShapeOnly(const std::string &name, size_t argument) {
  static const std::unordered_set<std::string> ofFirst = {
      "aten::size",         "aten::dim",       "aten::numel",         "aten::len",
      "aten::zeros_like",   "aten::ones_like", "aten::full_like",     "aten::new_zeros",
      "aten::new_ones",     "aten::new_full",  "aten::new_tensor",    "prim::dtype",
      "prim::device",       "prim::shape",     "prim::layout",        "aten::is_floating_point",
      "aten::is_complex",   "prim::is_cuda",   "prim::is_sparse",     "prim::is_mkldnn",
      "prim::is_quantized", "prim::is_nested", "aten::element_size",  "aten::get_device",
      "aten::result_type",  "prim::is_meta",   "aten::is_contiguous", "aten::_shape_as_tensor",
      "prim::ndim",         "prim::type"};
  static const std::unordered_set<std::string> ofSecond = {"aten::type_as", "aten::to", "aten::expand_as",
                                                           "aten::view_as", "aten::reshape_as"};
  return (argument == 0 && ofFirst.count(name) > 0) || (argument == 1 && ofSecond.count(name) > 0);
}

const char *introducedIn(const std::string &name) {
  static const std::unordered_map<std::string, const char *> table = {
      {"aten::scaled_dot_product_attention", "2.0"},
      {"aten::_scaled_dot_product_flash_attention", "2.0"},
      {"aten::_scaled_dot_product_efficient_attention", "2.0"},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", "2.2"},
      {"aten::rms_norm", "2.4"},
      {"aten::_fused_rms_norm", "2.8"},
      {"aten::_fused_sdp_choice", "1.13"},
      {"aten::unsafe_chunk", "1.5"},
      {"aten::_safe_softmax", "2.5"},
      {"aten::linalg_vector_norm", "1.8"},
      {"aten::_to_cpu", "2.0"},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

//===----------------------------------------------------------------------===//
// Helpers that several themes share
//===----------------------------------------------------------------------===//

TensorRef makeScalar(const c10::Scalar &value) {
  at::Tensor tensor = at::scalar_tensor(value, at::TensorOptions().dtype(value.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return makeKnown(tensor);
}

at::ScalarType promote(const std::vector<TensorRef> &tensors) {
  at::native::ResultTypeState state = {};
  for (const TensorRef &tensor : tensors) {
    if (tensor->isKnown() && tensor->known.unsafeGetTensorImpl()->is_wrapped_number())
      state = at::native::update_result_type_state(tensor->known, state);
    else
      state =
          at::native::update_result_type_state(at::empty(Shape(std::min<size_t>(tensor->shape.size(), 1), 1),
                                                         at::TensorOptions().dtype(tensor->type)),
                                               state);
  }
  return at::native::result_type(state);
}

Shape broadcastShapes(const std::vector<TensorRef> &tensors) {
  Shape result;
  for (const TensorRef &tensor : tensors) {
    Shape shape = tensor->shape;
    size_t rank = std::max(shape.size(), result.size());
    shape.insert(shape.begin(), rank - shape.size(), 1);
    result.insert(result.begin(), rank - result.size(), 1);
    for (size_t i = 0; i < rank; ++i) {
      if (shape[i] != result[i] && shape[i] != 1 && result[i] != 1) {
        std::string shapes;
        for (const TensorRef &other : tensors)
          shapes += (shapes.empty() ? "" : " and ") + spellList(other->shape);
        fail("tensors of shapes " + shapes + " do not broadcast to one shape");
      }
      if (result[i] == 1)
        result[i] = shape[i];
    }
  }
  return result;
}

void unify(Builder &b, std::vector<TensorRef> &tensors, at::ScalarType type) {
  Shape shape = broadcastShapes(tensors);
  for (TensorRef &tensor : tensors) {
    if (type != at::ScalarType::Undefined)
      tensor = b.convert(tensor, type);
    tensor = broadcastTo(b, tensor, shape);
  }
}

TensorRef combine(Builder &b, const char *op, TensorRef x, TensorRef y) {
  std::vector<TensorRef> both = {std::move(x), std::move(y)};
  unify(b, both, promote(both));
  return b.binary(op, both[0], both[1]);
}

TensorRef combine(Builder &b, const char *op, const TensorRef &x, double y) {
  return b.binary(op, x, b.splat(y, x->shape, x->type));
}

TensorRef reduceDims(Builder &b, const char *kind, const TensorRef &x, const Shape &dims, bool keep) {
  TensorRef result = b.reduce(kind, x, dims);
  if (!keep)
    return result;
  Shape shape = x->shape;
  for (int64_t dim : dims)
    shape[dim] = 1;
  return b.reshape(result, shape);
}

size_t dimsOf(const Call &call) {
  const std::string &name = call.schema.name();
  return static_cast<size_t>(name[name.find_first_of("123")] - '0');
}

Shape perDim(Call &call, const char *name, size_t numDims) {
  Shape values = call.integers(name);
  if (values.size() == 1)
    values.resize(numDims, values.front());
  if (values.size() != numDims)
    fail(call.schema.name() + " over " + std::to_string(numDims) + " dimensions with " + name + " " +
         spellList(values));
  return values;
}

TensorRef summand(Call &call) {
  TensorRef x = call.tensor("self");
  at::ScalarType natural = c10::isIntegralType(x->type, /*includeBool=*/true) ? at::kLong : x->type;
  return call.b.convert(x, call.type("dtype", natural));
}

TensorRef meanDims(Builder &b, const TensorRef &x, const Shape &dims, bool keep) {
  double count = 1;
  for (int64_t dim : dims)
    count *= static_cast<double>(x->shape[dim]);
  return combine(b, "mul", reduceDims(b, "sum", x, dims, keep), 1.0 / count);
}

TensorRef asFloat(Builder &b, const TensorRef &x) {
  return c10::isFloatingType(x->type) ? x : b.convert(x, at::kFloat);
}

TensorRef asView(const TensorRef &source, TensorRef result) {
  if (source->storage && result != source && result->storage) {
    result->storage = source->storage;
    result->storage->members.push_back(result);
  }
  return result;
}

} // namespace ds::ts
