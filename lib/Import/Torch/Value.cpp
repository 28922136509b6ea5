//===- Value.cpp - Conversions between imported values and LibTorch's -----------===//

#include "Value.h"
#include "Failure.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <array>

namespace ds::ts {

int64_t Tensor::numel() const {
  int64_t count = 1;
  for (int64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      fail("a tensor of shape " + spellList(shape) + " has more elements than 64 bits can count");
  return count;
}

TensorRef makeKnown(at::Tensor tensor) {
  auto result = std::make_shared<Tensor>();
  result->shape = tensor.sizes().vec();
  result->type = tensor.scalar_type();
  result->known = std::move(tensor);
  return result;
}

TensorRef makeNamed(std::string name, Shape shape, at::ScalarType type) {
  auto result = std::make_shared<Tensor>();
  result->shape = std::move(shape);
  result->type = type;
  result->name = std::move(name);
  result->storage = std::make_shared<Storage>();
  result->storage->members.push_back(result);
  return result;
}

static bool isNumber(const at::Tensor &tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

c10::IValue asNumber(const c10::IValue &constant) {
  if (!constant.isTensor() || !constant.toTensor().defined() || constant.toTensor().dim() > 0)
    return constant;
  at::ScalarType type = constant.toTensor().scalar_type();
  if (type != at::kDouble && type != at::kLong)
    return constant;
  at::Tensor number = constant.toTensor().clone();
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

c10::IValue asTensor(const c10::IValue &value) {
  return value.isTensor() && isNumber(value.toTensor()) ? c10::IValue(value.toTensor().clone()) : value;
}

Value fromIValue(const c10::IValue &value) {
  if (value.isTensor())
    return value.toTensor().defined() ? Value(makeKnown(value.toTensor())) : none();
  if (value.isList()) {
    auto result = std::make_shared<Sequence>();
    for (const c10::IValue &item : value.toListRef())
      result->items.push_back(fromIValue(item));
    return result;
  }
  if (value.isTuple()) {
    auto result = std::make_shared<Sequence>();
    result->isTuple = true;
    for (const c10::IValue &item : value.toTupleRef().elements())
      result->items.push_back(fromIValue(item));
    return result;
  }
  if (value.isGenericDict()) {
    auto result = std::make_shared<Dictionary>();
    for (const auto &item : value.toGenericDict())
      result->items.emplace_back(fromIValue(item.key()), fromIValue(item.value()));
    return result;
  }
  return value;
}

bool isKnown(const Value &value) {
  if (auto *tensor = std::get_if<TensorRef>(&value))
    return (*tensor)->isKnown();
  if (auto *sequence = std::get_if<SequenceRef>(&value))
    return std::all_of((*sequence)->items.begin(), (*sequence)->items.end(), isKnown);
  if (auto *dictionary = std::get_if<DictionaryRef>(&value))
    return std::all_of((*dictionary)->items.begin(), (*dictionary)->items.end(),
                       [](const auto &item) { return isKnown(item.first) && isKnown(item.second); });
  return std::holds_alternative<c10::IValue>(value);
}

bool isUnknown(const Value &value) {
  if (auto *sequence = std::get_if<SequenceRef>(&value))
    return std::any_of((*sequence)->items.begin(), (*sequence)->items.end(), isUnknown);
  if (auto *dictionary = std::get_if<DictionaryRef>(&value))
    return std::any_of((*dictionary)->items.begin(), (*dictionary)->items.end(),
                       [](const auto &item) { return isUnknown(item.first) || isUnknown(item.second); });
  return std::holds_alternative<Unknown>(value);
}

const char *findUntold(const Value &value) {
  auto first = [](const char *a, const char *b) { return a ? a : b; };
  const char *found = nullptr;
  if (auto *unknown = std::get_if<Unknown>(&value))
    return unknown->what;
  if (auto *sequence = std::get_if<SequenceRef>(&value))
    for (const Value &item : (*sequence)->items)
      found = first(found, findUntold(item));
  if (auto *dictionary = std::get_if<DictionaryRef>(&value))
    for (const auto &[key, item] : (*dictionary)->items)
      found = first(found, first(findUntold(key), findUntold(item)));
  return found;
}

/// The element type of a list: what the static type says, or that of the first element.
static c10::TypePtr elementType(const c10::TypePtr &type, const std::vector<Value> &items) {
  if (type)
    if (auto list = type->cast<c10::ListType>())
      if (!list->getElementType()->hasFreeVariables() &&
          list->getElementType()->kind() != c10::TypeKind::AnyType)
        return list->getElementType();
  if (items.empty())
    return c10::TensorType::get();
  return toIValue(items.front(), nullptr).type();
}

static c10::IValue toList(const Sequence &sequence, const c10::TypePtr &type) {
  c10::TypePtr element = elementType(type, sequence.items);
  c10::impl::GenericList list(element);
  for (const Value &item : sequence.items)
    list.push_back(toIValue(item, element));
  return list;
}

c10::IValue toIValue(const Value &value, const c10::TypePtr &type) {
  if (auto *tensor = std::get_if<TensorRef>(&value))
    return (*tensor)->known;
  if (auto *sequence = std::get_if<SequenceRef>(&value)) {
    if (type)
      if (auto optional = type->cast<c10::OptionalType>())
        return toIValue(value, optional->getElementType());
    if (!(*sequence)->isTuple)
      return toList(**sequence, type);
    std::vector<c10::IValue> items;
    for (const Value &item : (*sequence)->items)
      items.push_back(toIValue(item, nullptr));
    return c10::ivalue::Tuple::create(std::move(items));
  }
  if (auto *dictionary = std::get_if<DictionaryRef>(&value)) {
    auto dictType = type ? type->cast<c10::DictType>() : nullptr;
    c10::TypePtr key = dictType ? dictType->getKeyType() : c10::StringType::get();
    c10::TypePtr item = dictType ? dictType->getValueType() : c10::AnyType::get();
    c10::impl::GenericDict result(key, item);
    for (const auto &[name, held] : (*dictionary)->items)
      result.insert(toIValue(name, key), toIValue(held, item));
    return result;
  }
  return std::get<c10::IValue>(value);
}

//===----------------------------------------------------------------------===//
// Spelling
//===----------------------------------------------------------------------===//

static constexpr std::array<std::pair<at::ScalarType, const char *>, 9> elementTypes = {{
    {at::kFloat, "f32"},
    {at::kDouble, "f64"},
    {at::kHalf, "f16"},
    {at::kBFloat16, "bf16"},
    {at::kLong, "i64"},
    {at::kInt, "i32"},
    {at::kChar, "i8"},
    {at::kByte, "ui8"},
    {at::kBool, "i1"},
}};

std::string spell(at::ScalarType type) {
  for (const auto &[known, spelling] : elementTypes)
    if (known == type)
      return spelling;
  throw Unsupported(std::string("a tensor of element type ") + c10::toString(type));
}

at::ScalarType parseElementType(const std::string &spelling) {
  for (const auto &[type, known] : elementTypes)
    if (spelling == known)
      return type;
  return at::ScalarType::Undefined;
}

std::string spell(const Shape &shape, at::ScalarType type) {
  std::string result = "tensor<";
  for (int64_t size : shape)
    result += std::to_string(size) + "x";
  return result + spell(type) + ">";
}

std::string spellList(const Shape &shape) {
  std::string result = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    result += (i ? ", " : "") + std::to_string(shape[i]);
  return result + "]";
}

} // namespace ds::ts
