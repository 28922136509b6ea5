//===- Pickle.cpp - Python's pickles as plain data ------------------------------===//

#include "ds/Runtime/Formats/Pickle.h"

#include "Files/Text.h"
#include "PickleTables.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

using namespace ds;
using namespace ds::rt;

bool ds::rt::countElements(std::span<const int64_t> shape, uint64_t &count) {
  count = 1;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    count = 0;
    return true;
  }
  int64_t product = 1;
  for (int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product))
      return false;
  count = uint64_t(product);
  return true;
}

uint64_t PickleTensor::numElements() const {
  uint64_t count = 0;
  (void)countElements(shape, count); // the reader has checked it
  return count;
}

bool PickleTensor::isPacked() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0)
      return true;
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

PickleRef PickleTables::container(PickleRef ref) const {
  const PickleNode &node = nodes[ref];
  switch (node.kind) {
  case PickleKind::List:
  case PickleKind::Tuple:
  case PickleKind::Dict:
    return ref;
  case PickleKind::Set:
    return node.flag ? node.first : ref;
  case PickleKind::Object:
    return node.count == kNoRef ? kNoRef : objects[node.count].items;
  default:
    return kNoRef;
  }
}

std::pair<std::string_view, std::string_view> PickleTables::nameOf(PickleRef ref) const {
  const PickleNode *node = &nodes[ref];
  if (node->kind == PickleKind::Object)
    node = &nodes[node->first];
  if (node->kind != PickleKind::Global)
    return {};
  return {text(node->first), text(node->last)};
}

PickleKind PickleValue::kind() const { return tables->nodes[node].kind; }

std::optional<bool> PickleValue::asBool() const {
  if (kind() != PickleKind::Bool)
    return std::nullopt;
  return tables->nodes[node].flag != 0;
}

std::optional<int64_t> PickleValue::asInt() const {
  if (kind() != PickleKind::Int)
    return std::nullopt;
  return int64_t(tables->nodes[node].word());
}

std::optional<double> PickleValue::asNumber() const {
  if (kind() == PickleKind::Float)
    return std::bit_cast<double>(tables->nodes[node].word());
  if (std::optional<int64_t> value = asInt())
    return double(*value);
  return std::nullopt;
}

std::optional<std::string_view> PickleValue::asText() const {
  if (kind() != PickleKind::Text)
    return std::nullopt;
  return tables->text(node);
}

/// The bytes whose values are the code points of `text`, as Python's latin-1 codec gives them.
static std::optional<std::string> bytesOfCodePoints(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = uint8_t(text[i]);
    if (byte < 0x80) {
      out += char(byte);
    } else if ((byte == 0xc2 || byte == 0xc3) && i + 1 < text.size() &&
               (uint8_t(text[i + 1]) & 0xc0) == 0x80) {
      out += char((byte & 3) << 6 | (uint8_t(text[++i]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> PickleValue::asBytes() const {
  if (kind() != PickleKind::Bytes)
    return std::nullopt;
  const PickleNode &value = tables->nodes[node];
  return value.flag ? bytesOfCodePoints(tables->text(value.first)) : std::string(tables->text(node));
}

/// The integers of a tuple that the reader has found to hold nothing else.
static std::vector<int64_t> integersOf(const PickleTables &tables, PickleRef tuple) {
  std::vector<int64_t> values;
  for (PickleRef child : tables.childrenOf(tuple))
    values.push_back(int64_t(tables.nodes[child].word()));
  return values;
}

std::optional<PickleTensor> PickleValue::asTensor() const {
  if (kind() != PickleKind::Tensor)
    return std::nullopt;
  const PickleNode &value = tables->nodes[node];
  const PickleNode &storage = tables->nodes[value.first];
  std::span<const PickleRef> description = tables->childrenOf(storage.first);
  std::span<const PickleRef> arguments = tables->childrenOf(value.last);
  PickleTensor tensor;
  tensor.dtype = FileDType(value.flag);
  tensor.storage = tables->text(description[2]);
  tensor.storageElements = tables->nodes[description[4]].word();
  if (storage.flag == kUntyped)
    tensor.storageElements /= bitSize(tensor.dtype) / 8;
  tensor.offset = tables->nodes[arguments[1]].word();
  tensor.shape = integersOf(*tables, arguments[2]);
  tensor.strides = integersOf(*tables, arguments[3]);
  return tensor;
}

bool PickleValue::isMap() const {
  PickleRef container = tables->container(node);
  return container != kNoRef && tables->nodes[container].kind == PickleKind::Dict;
}

size_t PickleValue::size() const {
  PickleRef container = tables->container(node);
  if (container == kNoRef)
    return 0;
  size_t count = tables->nodes[container].count;
  return tables->nodes[container].kind == PickleKind::Dict ? count / 2 : count;
}

PickleValue PickleValue::operator[](size_t index) const {
  assert(!isMap() && index < size());
  return {tables, tables->childrenOf(tables->container(node))[index]};
}

PickleValue PickleValue::key(size_t index) const {
  assert(isMap() && index < size());
  return {tables, tables->childrenOf(tables->container(node))[2 * index]};
}

PickleValue PickleValue::value(size_t index) const {
  assert(isMap() && index < size());
  return {tables, tables->childrenOf(tables->container(node))[2 * index + 1]};
}

/// The last value of that key in a Dict node, or kNoRef.
static PickleRef findIn(const PickleTables &tables, PickleRef dict, std::string_view name) {
  std::span<const PickleRef> children = tables.childrenOf(dict);
  for (size_t i = children.size(); i >= 2; i -= 2)
    if (tables.nodes[children[i - 2]].kind == PickleKind::Text && tables.text(children[i - 2]) == name)
      return children[i - 1];
  return kNoRef;
}

std::optional<PickleValue> PickleValue::find(std::string_view name) const {
  PickleRef found = kNoRef;
  if (isMap())
    found = findIn(*tables, tables->container(node), name);
  // Attributes are a dict, or a tuple of one and of those that a class keeps in slots.
  std::optional<PickleValue> attributes = found == kNoRef ? state() : std::nullopt;
  if (attributes && attributes->kind() == PickleKind::Dict)
    found = findIn(*tables, attributes->node, name);
  if (attributes && attributes->kind() == PickleKind::Tuple)
    for (PickleRef part : tables->childrenOf(attributes->node))
      if (found == kNoRef && tables->nodes[part].kind == PickleKind::Dict)
        found = findIn(*tables, part, name);
  if (found == kNoRef)
    return std::nullopt;
  return PickleValue(tables, found);
}

std::string PickleValue::typeName() const {
  auto [module, name] = tables->nameOf(node);
  // What a file calls a name may be as long as the file.
  constexpr size_t kLongest = 200;
  return std::string(module.substr(0, kLongest)) + (name.empty() ? "" : ".") +
         std::string(name.substr(0, kLongest));
}

std::optional<PickleValue> PickleValue::arguments() const {
  if (kind() != PickleKind::Object)
    return std::nullopt;
  return PickleValue(tables, tables->nodes[node].last);
}

std::optional<PickleValue> PickleValue::state() const {
  const PickleNode &value = tables->nodes[node];
  if (value.kind != PickleKind::Object || value.count == kNoRef ||
      tables->objects[value.count].state == kNoRef)
    return std::nullopt;
  return PickleValue(tables, tables->objects[value.count].state);
}

std::string PickleValue::describe() const {
  static constexpr const char *kNames[] = {
      "None",    "a truth value", "an integer", "an integer of more than 64 bits",
      "a float", "bytes",         "a text",     "a list",
      "a tuple", "a dict",        "a set"};
  switch (kind()) {
  case PickleKind::Global:
    return "the name " + quote(typeName());
  case PickleKind::Storage:
    return "a storage";
  case PickleKind::Tensor:
    return "a tensor";
  case PickleKind::Object:
    return "an object of " + quote(typeName()) + ", which is not made";
  default:
    return kNames[size_t(kind())];
  }
}

Pickle::Pickle(std::unique_ptr<PickleTables> tables) : tables(std::move(tables)) {}
Pickle::Pickle(Pickle &&) noexcept = default;
Pickle &Pickle::operator=(Pickle &&) noexcept = default;
Pickle::~Pickle() = default;

PickleValue Pickle::root() const { return {tables.get(), tables->root}; }

std::vector<Pickle::Storage> Pickle::storages() const {
  std::vector<Storage> found;
  for (const PickleNode &node : tables->nodes) {
    if (node.kind != PickleKind::Storage)
      continue;
    std::span<const PickleRef> description = tables->childrenOf(node.first);
    uint64_t width = node.flag == kUntyped ? 1 : bitSize(FileDType(node.flag)) / 8;
    found.push_back({tables->text(description[2]), tables->nodes[description[4]].word() * width});
  }
  return found;
}
