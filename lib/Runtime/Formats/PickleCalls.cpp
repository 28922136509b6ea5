//===- PickleCalls.cpp - What a pickle would call -------------------------------===//
//
// The list of what is understood, by name. Nothing is called: an OrderedDict is an empty dict, a torch.Size
// its tuple, a rebuilt tensor a view of a storage whose bounds are checked here. All else is an Object.
//
//===---------------------------------------------------------------------------===//

#include "Files/Text.h"
#include "PickleMachine.h"

#include <memory>
#include <new>

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

bool PickleMachine::isGlobal(PickleRef ref, std::string_view module, std::string_view name) const {
  return kindOf(ref) == PickleKind::Global && tables.nameOf(ref) == std::pair(module, name);
}

PickleObject &PickleMachine::partsOf(PickleRef object) {
  PickleNode &node = tables.nodes[object];
  if (node.count == kNoRef) {
    node.count = uint32_t(tables.objects.size());
    tables.objects.emplace_back();
  }
  return tables.objects[node.count];
}

bool PickleMachine::readExtents(PickleRef tuple, std::vector<int64_t> &out, const char *what) {
  std::vector<PickleRef> items;
  if (kindOf(tuple) == PickleKind::Tuple)
    items = peek(tuple, kMaxPickleRank + 1);
  bool isRight = kindOf(tuple) == PickleKind::Tuple && items.size() <= kMaxPickleRank;
  for (PickleRef item : items)
    isRight = isRight && kindOf(item) == PickleKind::Int && int64_t(tables.nodes[item].word()) >= 0;
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
PickleRef PickleMachine::rebuildTensor(PickleRef callee, PickleRef arguments, bool hasDtype) {
  std::vector<PickleRef> items = peek(arguments, 7);
  if (items.size() < (hasDtype ? 7 : 4)) {
    fail("rebuilds a tensor from " + std::to_string(items.size()) + " values");
    return kNoRef;
  }
  if (kindOf(items[0]) != PickleKind::Storage || kindOf(items[1]) != PickleKind::Int) {
    fail("rebuilds a tensor from something that is no storage of a known type, or at an offset that is no "
         "integer");
    return kNoRef;
  }
  uint8_t dtype = tables.nodes[items[0]].flag;
  for (const KnownDtype &known : kDtypes)
    if (hasDtype && isGlobal(items[6], "torch", known.name))
      dtype = uint8_t(known.dtype);
  uint64_t bytes = tables.nodes[peek(tables.nodes[items[0]].first, 5)[4]].word();
  if (dtype == kUntyped)
    return addObject(callee, arguments); // a dtype that is not known here: its bytes mean nothing
  uint64_t elements =
      tables.nodes[items[0]].flag == kUntyped ? bytes / (bitSize(FileDType(dtype)) / 8) : bytes;

  std::vector<int64_t> shape, strides;
  int64_t offset = int64_t(tables.nodes[items[1]].word());
  if (!readExtents(items[2], shape, "shape") || !readExtents(items[3], strides, "strides"))
    return kNoRef;
  uint64_t end = 0;
  if (shape.size() != strides.size() || offset < 0 || !reach(shape, strides, offset, end) || end > elements) {
    fail("rebuilds a tensor of shape " + spellShape(shape) + " and strides " + spellShape(strides) +
         " at offset " + std::to_string(offset) + ", which leaves its storage of " +
         std::to_string(elements) + " elements");
    return kNoRef;
  }
  return addPair(PickleKind::Tensor, items[0], arguments, dtype);
}

/// (function, type, arguments, attributes): how torch writes tensors that have attributes of their own.
PickleRef PickleMachine::rebuildFromType(PickleRef callee, PickleRef arguments) {
  std::vector<PickleRef> items = peek(arguments, 4);
  bool isPlain = items.size() == 4 && kindOf(items[0]) == PickleKind::Global &&
                 kindOf(items[2]) == PickleKind::Tuple &&
                 (isGlobal(items[1], "torch", "Tensor") || isGlobal(items[1], "torch._tensor", "Tensor") ||
                  isGlobal(items[1], "torch.nn.parameter", "Parameter"));
  if (isPlain && (isGlobal(items[0], "torch._utils", "_rebuild_tensor") ||
                  isGlobal(items[0], "torch._utils", "_rebuild_tensor_v2")))
    return rebuildTensor(callee, items[2], false);
  if (isPlain && isGlobal(items[0], "torch._utils", "_rebuild_tensor_v3"))
    return rebuildTensor(callee, items[2], true);
  return addObject(callee, arguments);
}

/// kNoRef where the callee is not on the list, or not with these arguments.
PickleRef PickleMachine::callKnown(PickleRef callee, PickleRef arguments) {
  const KnownCallee *known = nullptr;
  for (const KnownCallee &candidate : kKnown)
    if (isGlobal(callee, candidate.module, candidate.name))
      known = &candidate;
  if (!known)
    return kNoRef;
  uint32_t count = tables.nodes[arguments].count;
  std::vector<PickleRef> items = peek(arguments, 2);
  PickleKind first = items.empty() ? PickleKind::None : kindOf(items[0]);
  switch (known->callee) {
  case Callee::Dict: // a defaultdict's argument is what it would call for missing keys
    return count == 0 || (count == 1 && first != PickleKind::List) ? add(PickleKind::Dict) : kNoRef;
  case Callee::Tuple:
    return count == 1 && first == PickleKind::Tuple ? items[0] : kNoRef;
  case Callee::Set:
    if (count == 0)
      return add(PickleKind::Set);
    return count == 1 && first == PickleKind::List ? addPair(PickleKind::Set, items[0], 0, 1) : kNoRef;
  case Callee::Bytes: // how protocol 2 writes bytes
    return count == 2 && first == PickleKind::Text && kindOf(items[1]) == PickleKind::Text &&
                   tables.text(items[1]) == "latin1"
               ? addPair(PickleKind::Bytes, items[0], 0, 1)
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

PickleRef PickleMachine::call(PickleRef callee, PickleRef arguments) {
  if (kindOf(arguments) == PickleKind::Tuple && kindOf(callee) == PickleKind::Global)
    if (PickleRef known = callKnown(callee, arguments); known != kNoRef || !message.empty())
      return known;
  return addObject(callee, arguments);
}

/// What a class would be given after it was made. Attributes of containers and tensors are of no use here.
bool PickleMachine::setState() {
  PickleRef state = pop(), target = top();
  switch (kindOf(target)) {
  case PickleKind::Object:
    partsOf(target).state = state;
    return true;
  case PickleKind::Dict:
  case PickleKind::List:
  case PickleKind::Set:
  case PickleKind::Tensor:
    return true;
  default:
    return fail("sets the attributes of a value that has none");
  }
}

/// ('storage', type, key, location, number of elements): where torch puts the bytes of tensors.
bool PickleMachine::pushStorage() {
  PickleRef id = pop();
  std::vector<PickleRef> items;
  if (kindOf(id) == PickleKind::Tuple)
    items = peek(id, 5);
  bool isRight = items.size() == 5 && kindOf(items[0]) == PickleKind::Text &&
                 tables.text(items[0]) == "storage" && kindOf(items[1]) == PickleKind::Global &&
                 kindOf(items[2]) == PickleKind::Text && kindOf(items[4]) == PickleKind::Int &&
                 int64_t(tables.nodes[items[4]].word()) >= 0 &&
                 tables.nodes[items[4]].word() < uint64_t(INT64_MAX) / 16;
  if (!isRight)
    return fail("refers to something outside of the pickle that is no storage of torch's");
  for (const KnownDtype &known : kStorages)
    if (isGlobal(items[1], "torch", known.name)) {
      push(addPair(PickleKind::Storage, id, 0, uint8_t(known.dtype)));
      return true;
    }
  if (!isGlobal(items[1], "torch", "UntypedStorage") &&
      !isGlobal(items[1], "torch.storage", "UntypedStorage"))
    return fail("has a storage of type " + quote(std::string(tables.nameOf(items[1]).second.substr(0, 200))) +
                ", which is not known here");
  push(addPair(PickleKind::Storage, id, 0, kUntyped));
  return true;
}

bool PickleMachine::readCall(uint8_t opcode) {
  std::string_view module, name;
  PickleRef first, second, third;
  switch (opcode) {
  case 'c': // GLOBAL
    if (!takeLine(module) || !takeLine(name))
      return true;
    first = addText(PickleKind::Text, module);
    second = addText(PickleKind::Text, name);
    push(addPair(PickleKind::Global, first, second));
    return true;
  case 0x93: // STACK_GLOBAL
    second = pop(), first = pop();
    if (kindOf(first) != PickleKind::Text || kindOf(second) != PickleKind::Text)
      return fail("names a global by something that is no text");
    push(addPair(PickleKind::Global, first, second));
    return true;
  case 'R': // REDUCE
    second = pop(), first = pop();
    if (PickleRef made = call(first, second); message.empty())
      push(made);
    return true;
  case 0x81: // NEWOBJ
    second = pop(), first = pop();
    push(addObject(first, second));
    return true;
  case 0x92: // NEWOBJ_EX; its keyword arguments are dropped
    third = pop(), second = pop(), first = pop();
    (void)third;
    push(addObject(first, second));
    return true;
  case 'b': // BUILD
    return setState();
  case 'Q': // BINPERSID
    return pushStorage();
  default:
    return false;
  }
}

Result<Pickle> Pickle::read(std::string bytes, const std::string &name) try {
  auto corrupt = [&](const std::string &what) {
    return Error{ExitCode::Corrupt, quote(name) + ": " + what,
                 "copy the file again, or save it again with torch.save"};
  };
  if (bytes.size() > kMaxPickleBytes)
    return corrupt("the pickle has " + std::to_string(bytes.size()) + " bytes; the limit is " +
                   std::to_string(kMaxPickleBytes));
  auto tables = std::make_unique<PickleTables>();
  tables->bytes = std::move(bytes);
  PickleMachine machine(*tables);
  if (!machine.run())
    return corrupt("the pickle, at byte " + std::to_string(machine.at) + ", " + machine.message);
  return Pickle(std::move(tables));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the pickle of " + quote(name), "free memory"};
}
