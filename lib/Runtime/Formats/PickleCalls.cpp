//===- PickleCalls.cpp - What a pickle would call -------------------------------===//
//
// The list of what is understood, by name. Nothing is called: an OrderedDict is an empty dict, a torch.Size
// its tuple, a rebuilt tensor a view of a storage whose bounds are checked here. All else is an Object.
//
//===---------------------------------------------------------------------------===//

#include "PickleCalls.h"

#include "Files/Text.h"

using namespace ds;
using namespace ds::rt;

namespace {

/// What a global on the list gives when it is called.
enum class Callee : uint8_t { Dict, Tuple, Set, Bytes, Tensor, TensorOfDtype, Parameter, TensorFromType };

struct KnownCallee {
  std::string_view module, name;
  Callee callee;
};

constexpr KnownCallee kKnown[] = {
    {"collections", "OrderedDict", Callee::Dict},
    {"collections", "defaultdict", Callee::Dict},
    {"torch", "Size", Callee::Tuple},
    {"builtins", "set", Callee::Set},
    {"__builtin__", "set", Callee::Set},
    {"builtins", "frozenset", Callee::Set},
    {"__builtin__", "frozenset", Callee::Set},
    {"_codecs", "encode", Callee::Bytes},
    {"torch._utils", "_rebuild_tensor", Callee::Tensor},
    {"torch._utils", "_rebuild_tensor_v2", Callee::Tensor},
    {"torch._utils", "_rebuild_tensor_v3", Callee::TensorOfDtype},
    {"torch._utils", "_rebuild_parameter", Callee::Parameter},
    {"torch._utils", "_rebuild_parameter_with_state", Callee::Parameter},
    {"torch._tensor", "_rebuild_from_type_v2", Callee::TensorFromType},
};

struct KnownDtype {
  std::string_view name; ///< as torch.NAME, and with Storage behind it as the storage's class
  FileDType dtype;
};

constexpr KnownDtype kStorages[] = {
    {"DoubleStorage", FileDType::F64},       {"FloatStorage", FileDType::F32},
    {"HalfStorage", FileDType::F16},         {"LongStorage", FileDType::I64},
    {"IntStorage", FileDType::I32},          {"ShortStorage", FileDType::I16},
    {"CharStorage", FileDType::I8},          {"ByteStorage", FileDType::U8},
    {"BoolStorage", FileDType::Bool},        {"BFloat16Storage", FileDType::BF16},
    {"ComplexFloatStorage", FileDType::C64},
};

constexpr KnownDtype kDtypes[] = {
    {"float64", FileDType::F64},        {"float32", FileDType::F32},
    {"float16", FileDType::F16},        {"bfloat16", FileDType::BF16},
    {"int64", FileDType::I64},          {"int32", FileDType::I32},
    {"int16", FileDType::I16},          {"int8", FileDType::I8},
    {"uint8", FileDType::U8},           {"uint16", FileDType::U16},
    {"uint32", FileDType::U32},         {"uint64", FileDType::U64},
    {"bool", FileDType::Bool},          {"complex64", FileDType::C64},
    {"float8_e5m2", FileDType::F8E5M2}, {"float8_e4m3fn", FileDType::F8E4M3},
};

} // namespace

bool PickleCalls::readExtents(PickleRef tuple, std::vector<int64_t> &out, const char *what) {
  std::vector<PickleRef> items;
  if (values.kindOf(tuple) == PickleKind::Tuple)
    items = values.peek(tuple, kMaxPickleRank + 1);
  bool isRight = values.kindOf(tuple) == PickleKind::Tuple && items.size() <= kMaxPickleRank;
  for (PickleRef item : items)
    isRight = isRight && values.kindOf(item) == PickleKind::Int && int64_t(tables.nodes[item].word()) >= 0;
  if (!isRight) {
    fail(std::string("rebuilds a tensor whose ") + what + " is not a tuple of at most " +
         std::to_string(kMaxPickleRank) + " integers from 0 on");
    return false;
  }
  for (PickleRef item : items)
    out.push_back(int64_t(tables.nodes[item].word()));
  return true;
}

/// One past the last element that the tensor reaches, or false where that leaves 64 bits.
static bool reach(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides, int64_t offset,
                  uint64_t &end) {
  uint64_t count = 0;
  if (!countElements(shape, count))
    return false;
  int64_t last = offset;
  for (size_t i = 0; i < shape.size() && count > 0; ++i) {
    int64_t extent;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last))
      return false;
  }
  end = uint64_t(last) + (count > 0 && last < INT64_MAX ? 1 : 0);
  return count == 0 || last < INT64_MAX;
}

/// (storage, offset, size, stride, ...), of version 3 with the dtype as item 6.
PickleRef PickleCalls::rebuildTensor(PickleRef callee, PickleRef arguments, bool hasDtype) {
  std::vector<PickleRef> items = values.peek(arguments, 7);
  if (items.size() < (hasDtype ? 7 : 4))
    return fail("rebuilds a tensor from " + std::to_string(items.size()) + " values");
  if (values.kindOf(items[0]) != PickleKind::Storage || values.kindOf(items[1]) != PickleKind::Int)
    return fail(
        "rebuilds a tensor from something that is no storage of a known type, or at an offset that is no "
        "integer");
  uint8_t dtype = tables.nodes[items[0]].flag;
  for (const KnownDtype &known : kDtypes)
    if (hasDtype && values.isGlobal(items[6], "torch", known.name))
      dtype = uint8_t(known.dtype);
  uint64_t bytes = tables.nodes[values.peek(tables.nodes[items[0]].first, 5)[4]].word();
  if (dtype == kUntyped)
    return values.addObject(callee, arguments); // a dtype that is not known here: its bytes mean nothing
  uint64_t elements =
      tables.nodes[items[0]].flag == kUntyped ? bytes / (bitSize(FileDType(dtype)) / 8) : bytes;

  std::vector<int64_t> shape, strides;
  int64_t offset = int64_t(tables.nodes[items[1]].word());
  if (!readExtents(items[2], shape, "shape") || !readExtents(items[3], strides, "strides"))
    return kNoRef;
  uint64_t end = 0;
  if (shape.size() != strides.size() || offset < 0 || !reach(shape, strides, offset, end) || end > elements)
    return fail("rebuilds a tensor of shape " + spellShape(shape) + " and strides " + spellShape(strides) +
                " at offset " + std::to_string(offset) + ", which leaves its storage of " +
                std::to_string(elements) + " elements");
  return values.addPair(PickleKind::Tensor, items[0], arguments, dtype);
}

/// (function, type, arguments, attributes): how torch writes tensors that have attributes of their own.
PickleRef PickleCalls::rebuildFromType(PickleRef callee, PickleRef arguments) {
  std::vector<PickleRef> items = values.peek(arguments, 4);
  bool isPlain =
      items.size() == 4 && values.kindOf(items[0]) == PickleKind::Global &&
      values.kindOf(items[2]) == PickleKind::Tuple &&
      (values.isGlobal(items[1], "torch", "Tensor") || values.isGlobal(items[1], "torch._tensor", "Tensor") ||
       values.isGlobal(items[1], "torch.nn.parameter", "Parameter"));
  if (isPlain && (values.isGlobal(items[0], "torch._utils", "_rebuild_tensor") ||
                  values.isGlobal(items[0], "torch._utils", "_rebuild_tensor_v2")))
    return rebuildTensor(callee, items[2], false);
  if (isPlain && values.isGlobal(items[0], "torch._utils", "_rebuild_tensor_v3"))
    return rebuildTensor(callee, items[2], true);
  return values.addObject(callee, arguments);
}

/// kNoRef where the callee is not on the list, or not with these arguments.
PickleRef PickleCalls::callKnown(PickleRef callee, PickleRef arguments) {
  const KnownCallee *known = nullptr;
  for (const KnownCallee &candidate : kKnown)
    if (values.isGlobal(callee, candidate.module, candidate.name))
      known = &candidate;
  if (!known)
    return kNoRef;
  uint32_t count = tables.nodes[arguments].count;
  std::vector<PickleRef> items = values.peek(arguments, 2);
  PickleKind first = items.empty() ? PickleKind::None : values.kindOf(items[0]);
  switch (known->callee) {
  case Callee::Dict: // a defaultdict's argument is what it would call for missing keys
    return count == 0 || (count == 1 && first != PickleKind::List) ? values.add(PickleKind::Dict) : kNoRef;
  case Callee::Tuple:
    return count == 1 && first == PickleKind::Tuple ? items[0] : kNoRef;
  case Callee::Set:
    if (count == 0)
      return values.add(PickleKind::Set);
    return count == 1 && first == PickleKind::List ? values.addPair(PickleKind::Set, items[0], 0, 1) : kNoRef;
  case Callee::Bytes: // how protocol 2 writes bytes
    return count == 2 && first == PickleKind::Text && values.kindOf(items[1]) == PickleKind::Text &&
                   tables.text(items[1]) == "latin1"
               ? values.addPair(PickleKind::Bytes, items[0], 0, 1)
               : kNoRef;
  case Callee::Tensor:
    return rebuildTensor(callee, arguments, false);
  case Callee::TensorOfDtype:
    return rebuildTensor(callee, arguments, true);
  case Callee::Parameter:
    if (first == PickleKind::Tensor)
      return items[0];
    if (first != PickleKind::Object)
      fail("rebuilds a parameter from something that is no tensor");
    return kNoRef;
  case Callee::TensorFromType:
    return rebuildFromType(callee, arguments);
  }
  return kNoRef;
}

PickleRef PickleCalls::call(PickleRef callee, PickleRef arguments) {
  if (values.kindOf(arguments) == PickleKind::Tuple && values.kindOf(callee) == PickleKind::Global)
    if (PickleRef known = callKnown(callee, arguments); known != kNoRef || fault.isThere())
      return known;
  return values.addObject(callee, arguments);
}

PickleRef PickleCalls::storage(PickleRef id) {
  std::vector<PickleRef> items;
  if (values.kindOf(id) == PickleKind::Tuple)
    items = values.peek(id, 5);
  bool isRight = items.size() == 5 && values.kindOf(items[0]) == PickleKind::Text &&
                 tables.text(items[0]) == "storage" && values.kindOf(items[1]) == PickleKind::Global &&
                 values.kindOf(items[2]) == PickleKind::Text && values.kindOf(items[4]) == PickleKind::Int &&
                 int64_t(tables.nodes[items[4]].word()) >= 0 &&
                 tables.nodes[items[4]].word() < uint64_t(INT64_MAX) / 16;
  if (!isRight)
    return fail("refers to something outside of the pickle that is no storage of torch's");
  for (const KnownDtype &known : kStorages)
    if (values.isGlobal(items[1], "torch", known.name))
      return values.addPair(PickleKind::Storage, id, 0, uint8_t(known.dtype));
  if (!values.isGlobal(items[1], "torch", "UntypedStorage") &&
      !values.isGlobal(items[1], "torch.storage", "UntypedStorage"))
    return fail("has a storage of type " + quote(std::string(tables.nameOf(items[1]).second.substr(0, 200))) +
                ", which is not known here");
  return values.addPair(PickleKind::Storage, id, 0, kUntyped);
}
