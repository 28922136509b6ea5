//===- Containers.cpp - Lists, tuples, dictionaries and None --------------------===//
//
// Their elements may be tensors that are not known, so that LibTorch cannot hold them. Operators whose answer
// differs between import and training stand here too: those of this file are never evaluated.
//
//===---------------------------------------------------------------------------===//

#include "../Operators.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>

namespace ds::ts {

namespace {

Value makeListOf(Call &call) { return makeList(call.arguments); }
Value makeTupleOf(Call &call) { return makeTuple(call.arguments); }

Value makeDict(Call &call) {
  auto result = std::make_shared<Dictionary>();
  for (size_t i = 0; i + 1 < call.arguments.size(); i += 2)
    result->items.emplace_back(call.arguments[i], call.arguments[i + 1]);
  return result;
}

/// The list or tuple that an argument is; a failure where it is none.
SequenceRef sequenceAt(Call &call, size_t index) {
  auto *sequence = std::get_if<SequenceRef>(&call.arguments.at(index));
  if (!sequence)
    throw Unsupported(std::string(call.node->kind().toQualString()) + " on a value that is not known");
  return *sequence;
}

int64_t integerAt(Call &call, size_t index) {
  auto *known = std::get_if<c10::IValue>(&call.arguments.at(index));
  if (!known || !known->isInt())
    throw Unsupported(std::string(call.node->kind().toQualString()) + " with a position that is not known");
  return known->toInt();
}

/// A position counted from the front; a failure where it lies outside.
size_t positionIn(const SequenceRef &sequence, int64_t position) {
  auto size = static_cast<int64_t>(sequence->items.size());
  int64_t wrapped = position < 0 ? position + size : position;
  if (wrapped < 0 || wrapped >= size)
    fail("position " + std::to_string(position) + " lies outside of a list of " + std::to_string(size));
  return static_cast<size_t>(wrapped);
}

Value unpack(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  if (sequence->items.size() != call.node->outputs().size())
    fail("expects " + std::to_string(call.node->outputs().size()) + " values to unpack, but got " +
         std::to_string(sequence->items.size()));
  return call.node->outputs().size() == 1 ? sequence->items.front() : Value(makeTuple(sequence->items));
}

Value tupleIndex(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  return sequence->items[positionIn(sequence, integerAt(call, 1))];
}

Value tupleSlice(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  auto begin = sequence->items.begin();
  return makeTuple({begin + call.node->i(c10::attr::beg), begin + call.node->i(c10::attr::end)});
}

/// True when two known keys are equal.
bool areEqual(const Value &a, const Value &b) {
  auto *x = std::get_if<c10::IValue>(&a), *y = std::get_if<c10::IValue>(&b);
  return x && y && *x == *y;
}

Value getItem(Call &call) {
  if (auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0])) {
    for (const auto &[key, value] : (*dictionary)->items)
      if (areEqual(key, call.arguments[1]))
        return value;
    fail("a dictionary does not have the key that is asked for");
  }
  if (auto *text = std::get_if<c10::IValue>(&call.arguments[0]); text && text->isString())
    throw Unsupported("an index into a string");
  return tupleIndex(call);
}

Value setItem(Call &call) {
  if (auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0])) {
    for (auto &[key, value] : (*dictionary)->items)
      if (areEqual(key, call.arguments[1]))
        return value = call.arguments[2], none();
    (*dictionary)->items.emplace_back(call.arguments[1], call.arguments[2]);
    return none();
  }
  SequenceRef sequence = sequenceAt(call, 0);
  sequence->items[positionIn(sequence, integerAt(call, 1))] = call.arguments[2];
  return sequence;
}

Value append(Call &call) {
  sequenceAt(call, 0)->items.push_back(call.arguments[1]);
  return call.arguments[0];
}

Value extend(Call &call) {
  std::vector<Value> more = sequenceAt(call, 1)->items;
  auto &items = sequenceAt(call, 0)->items;
  items.insert(items.end(), more.begin(), more.end());
  return none();
}

Value insert(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  auto size = static_cast<int64_t>(sequence->items.size());
  int64_t position = integerAt(call, 1);
  position = std::clamp(position < 0 ? position + size : position, int64_t(0), size);
  sequence->items.insert(sequence->items.begin() + position, call.arguments[2]);
  return none();
}

Value pop(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  size_t position = positionIn(sequence, call.arguments.size() > 1 ? integerAt(call, 1) : -1);
  Value result = sequence->items[position];
  sequence->items.erase(sequence->items.begin() + static_cast<int64_t>(position));
  return result;
}

Value copyList(Call &call) {
  SequenceRef sequence = sequenceAt(call, 0);
  return std::make_shared<Sequence>(*sequence);
}

Value reverse(Call &call) {
  auto &items = sequenceAt(call, 0)->items;
  std::reverse(items.begin(), items.end());
  return none();
}

/// The values of a dictionary's column, as a list.
template <bool keys>
Value column(Call &call) {
  auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0]);
  if (!dictionary)
    throw Unsupported("a dictionary that is not known");
  std::vector<Value> result;
  for (const auto &[key, value] : (*dictionary)->items)
    result.push_back(keys ? key : value);
  return makeList(std::move(result));
}

Value items(Call &call) {
  auto *dictionary = std::get_if<DictionaryRef>(&call.arguments[0]);
  if (!dictionary)
    throw Unsupported("a dictionary that is not known");
  std::vector<Value> result;
  for (const auto &[key, value] : (*dictionary)->items)
    result.push_back(makeTuple({key, value}));
  return makeList(std::move(result));
}

Value passThrough(Call &call) {
  if (isNone(call.arguments[0]))
    fail("unwraps an optional value that is None");
  return call.arguments[0];
}

Value cast(Call &call) { return call.arguments[0]; }

template <bool negate>
Value isSame(Call &call) {
  if (isUnknown(call.arguments[0]) || isUnknown(call.arguments[1]))
    return Unknown();
  bool isBothNone = isNone(call.arguments[0]) && isNone(call.arguments[1]);
  bool same = isBothNone || areEqual(call.arguments[0], call.arguments[1]);
  auto *x = std::get_if<TensorRef>(&call.arguments[0]), *y = std::get_if<TensorRef>(&call.arguments[1]);
  same |= x && y && *x == *y;
  return c10::IValue(same != negate);
}

/// Training has gradients; the import itself evaluates without.
Value isGradEnabled(Call &) { return c10::IValue(true); }

Value nothing(Call &) { return none(); }

Value raise(Call &call) {
  auto *message = std::get_if<c10::IValue>(&call.arguments[0]);
  fail("the model raises an exception for these inputs: " + (message && message->isString()
                                                                 ? message->toStringRef().substr(0, 500)
                                                                 : std::string("(no message)")),
       "give --input the shapes that the model expects");
}

/// A value that is read on a path that is never taken.
Value uninitialized(Call &) { return Unknown(); }

constexpr Operator operators[] = {
    {"prim::ListConstruct", makeListOf},
    {"prim::TupleConstruct", makeTupleOf},
    {"prim::DictConstruct", makeDict},
    {"prim::ListUnpack", unpack},
    {"prim::TupleUnpack", unpack},
    {"prim::TupleIndex", tupleIndex},
    {"prim::TupleSlice", tupleSlice},
    {"aten::__getitem__", getItem},
    {"aten::_set_item", setItem},
    {"aten::append", append},
    {"aten::extend", extend},
    {"aten::insert", insert},
    {"aten::pop", pop},
    {"aten::list", copyList},
    {"aten::reverse", reverse},
    {"aten::keys", column<true>},
    {"aten::values", column<false>},
    {"aten::items", items},
    {"aten::_unwrap_optional", passThrough},
    {"prim::unchecked_unwrap_optional", passThrough},
    {"prim::unchecked_cast", cast},
    {"aten::__is__", isSame<false>},
    {"aten::__isnot__", isSame<true>},
    {"aten::is_grad_enabled", isGradEnabled},
    {"aten::warn", nothing},
    {"prim::Print", nothing},
    {"prim::RaiseException", raise},
    {"prim::Uninitialized", uninitialized},
    {"prim::profile", cast},
};

} // namespace

OperatorList containerOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
