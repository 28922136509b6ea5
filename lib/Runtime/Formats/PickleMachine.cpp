//===- PickleMachine.cpp - The stack machine that pickles are programs of -------===//
//
// Opcodes are those of protocols 2 to 5 as picklers write them. What only older protocols and only
// hand-written pickles have (text numbers, INST, extension codes, buffers beside the file) is refused.
//
//===---------------------------------------------------------------------------===//

#include "PickleMachine.h"

#include <cstring>

using namespace ds;
using namespace ds::rt;

/// Nodes that every pickle shares.
static constexpr PickleRef kNone = 0, kFalse = 1, kTrue = 2, kEmptyTuple = 3;

PickleMachine::PickleMachine(PickleTables &tables) : tables(tables) {
  add(PickleKind::None);
  add(PickleKind::Bool, 0);
  add(PickleKind::Bool, 1);
  add(PickleKind::Tuple);
}

bool PickleMachine::fail(std::string text) {
  if (message.empty())
    message = std::move(text);
  return true; // the opcode was of the family
}

/// A double's bits from big-endian bytes.
static uint64_t swapped(uint64_t value) { return __builtin_bswap64(value); }

bool PickleMachine::readFixed(uint8_t opcode) {
  uint64_t value = 0;
  switch (opcode) {
  case 'N':
    push(kNone);
    return true;
  case 0x88: // NEWTRUE
    push(kTrue);
    return true;
  case 0x89: // NEWFALSE
    push(kFalse);
    return true;
  case 'J': // BININT
    return !takeNumber(4, value) || pushNumber(PickleKind::Int, uint64_t(int64_t(int32_t(value))));
  case 'K': // BININT1
    return !takeNumber(1, value) || pushNumber(PickleKind::Int, value);
  case 'M': // BININT2
    return !takeNumber(2, value) || pushNumber(PickleKind::Int, value);
  case 'G': // BINFLOAT
    return !takeNumber(8, value) || pushNumber(PickleKind::Float, swapped(value));
  case ')':
    push(kEmptyTuple);
    return true;
  case ']':
    push(add(PickleKind::List));
    return true;
  case '}':
    push(add(PickleKind::Dict));
    return true;
  case 0x8f: // EMPTY_SET
    push(add(PickleKind::Set));
    return true;
  default:
    return false;
  }
}

/// An integer of any length, little-endian and signed; what does not fit 64 bits is kept as a name only.
bool PickleMachine::pushLong(size_t lengthWidth) {
  uint64_t length = 0;
  std::string_view digits;
  if (!takeNumber(lengthWidth, length) || !take(length, digits))
    return true;
  if (length > 8) {
    push(addText(PickleKind::LongInt, digits));
    return true;
  }
  uint64_t value = 0;
  memcpy(&value, digits.data(), length);
  if (length > 0 && length < 8 && (uint8_t(digits.back()) & 0x80))
    value |= ~uint64_t(0) << (8 * length);
  return pushNumber(PickleKind::Int, value);
}

bool PickleMachine::readSized(uint8_t opcode) {
  switch (opcode) {
  case 0x8a: // LONG1
    return pushLong(1);
  case 0x8b: // LONG4
    return pushLong(4);
  case 'X': // BINUNICODE
  case 'T': // BINSTRING, of Python 2
    return pushText(PickleKind::Text, 4);
  case 0x8c: // SHORT_BINUNICODE
  case 'U':  // SHORT_BINSTRING, of Python 2
    return pushText(PickleKind::Text, 1);
  case 0x8d: // BINUNICODE8
    return pushText(PickleKind::Text, 8);
  case 'C': // SHORT_BINBYTES
    return pushText(PickleKind::Bytes, 1);
  case 'B': // BINBYTES
    return pushText(PickleKind::Bytes, 4);
  case 0x8e: // BINBYTES8
  case 0x96: // BYTEARRAY8
    return pushText(PickleKind::Bytes, 8);
  default:
    return false;
  }
}

/// The container that is added to when `target` is: itself, or what an object holds like a list or a dict.
PickleRef PickleMachine::itemsOf(PickleRef target, PickleKind kind) {
  if (kindOf(target) == PickleKind::Object) {
    if (partsOf(target).items == kNoRef) {
      PickleRef items = add(kind);
      partsOf(target).items = items;
    }
    target = partsOf(target).items;
  }
  if (kindOf(target) == kind && target != kEmptyTuple &&
      !(kind == PickleKind::Set && tables.nodes[target].flag))
    return target;
  fail("adds to a value that is no list, dict or set");
  return kNoRef;
}

/// Adds all from `begin` on to the container below.
bool PickleMachine::extend(PickleKind kind, size_t begin) {
  size_t count = stack.size() - begin;
  if (kind == PickleKind::Dict && count % 2 != 0)
    return fail("adds a key without a value to a dict");
  if (begin <= (marks.empty() ? 0 : marks.back()))
    return fail("takes a value from an empty stack");
  PickleRef target = itemsOf(stack[begin - 1], kind);
  if (target == kNoRef)
    return true;
  for (size_t i = begin; i < stack.size(); ++i)
    append(target, stack[i]);
  stack.resize(begin);
  return true;
}

bool PickleMachine::readContainer(uint8_t opcode) {
  size_t floor = marks.empty() ? 0 : marks.back(), held = stack.size() - floor, begin = 0;
  auto top = [&](size_t count) { return stack.size() - count; };
  switch (opcode) {
  case 0x85: // TUPLE1
  case 0x86: // TUPLE2
  case 0x87: // TUPLE3
    if (held < size_t(opcode - 0x84))
      return fail("takes a value from an empty stack");
    push(addContainer(PickleKind::Tuple, top(opcode - 0x84)));
    return true;
  case 't': // TUPLE
    if (popMark(begin))
      push(addContainer(PickleKind::Tuple, begin));
    return true;
  case 'l': // LIST
    if (popMark(begin))
      push(addContainer(PickleKind::List, begin));
    return true;
  case 0x91: // FROZENSET
    if (popMark(begin))
      push(addContainer(PickleKind::Set, begin));
    return true;
  case 'a': // APPEND
    return held < 2 ? fail("takes a value from an empty stack") : extend(PickleKind::List, top(1));
  case 'e': // APPENDS
    return !popMark(begin) || extend(PickleKind::List, begin);
  case 's': // SETITEM
    return held < 3 ? fail("takes a value from an empty stack") : extend(PickleKind::Dict, top(2));
  case 'u': // SETITEMS
    return !popMark(begin) || extend(PickleKind::Dict, begin);
  case 0x90: // ADDITEMS
    return !popMark(begin) || extend(PickleKind::Set, begin);
  default:
    return false;
  }
}

/// Picklers number what they remember as they write it, so that no honest number passes the file's size.
bool PickleMachine::remember(uint64_t index) {
  if (index >= tables.bytes.size())
    return fail("remembers a value as number " + std::to_string(index) + " in a file of " +
                std::to_string(tables.bytes.size()) + " bytes");
  PickleRef ref = top();
  if (memo.size() <= index)
    memo.resize(index + 1, kNoRef);
  memo[index] = ref;
  return true;
}

bool PickleMachine::recall(uint64_t index) {
  if (index >= memo.size() || memo[index] == kNoRef)
    return fail("refers to value " + std::to_string(index) + ", which is not there");
  push(memo[index]);
  return true;
}

bool PickleMachine::readStack(uint8_t opcode) {
  uint64_t value = 0;
  size_t begin = 0;
  switch (opcode) {
  case '(': // MARK
    marks.push_back(stack.size());
    return true;
  case '0': // POP takes a mark where that is on top
    if (!marks.empty() && marks.back() == stack.size())
      marks.pop_back();
    else
      pop();
    return true;
  case '1': // POP_MARK
    if (popMark(begin))
      stack.resize(begin);
    return true;
  case '2': // DUP
    push(top());
    return true;
  case 'q': // BINPUT
    return !takeNumber(1, value) || remember(value);
  case 'r': // LONG_BINPUT
    return !takeNumber(4, value) || remember(value);
  case 0x94: // MEMOIZE
    return remember(memo.size());
  case 'h': // BINGET
    return !takeNumber(1, value) || recall(value);
  case 'j': // LONG_BINGET
    return !takeNumber(4, value) || recall(value);
  case 0x95: // FRAME: how much a reader may load at once
    if (takeNumber(8, value) && value > tables.bytes.size() - position)
      return fail("has a frame of " + std::to_string(value) + " bytes, but the file has " +
                  std::to_string(tables.bytes.size() - position));
    return true;
  default:
    return false;
  }
}

void PickleMachine::flatten() {
  tables.children.reserve(tables.links.size());
  for (PickleNode &node : tables.nodes) {
    bool isContainer = node.kind == PickleKind::List || node.kind == PickleKind::Tuple ||
                       node.kind == PickleKind::Dict || (node.kind == PickleKind::Set && !node.flag);
    if (!isContainer)
      continue;
    uint32_t begin = uint32_t(tables.children.size());
    for (uint32_t i = 0, link = node.first; i < node.count; ++i, link = tables.links[link].next)
      tables.children.push_back(tables.links[link].value);
    node.first = begin;
  }
  tables.links.clear();
  tables.links.shrink_to_fit();
}

bool PickleMachine::run() {
  const std::string &bytes = tables.bytes;
  if (bytes.size() < 2 || uint8_t(bytes[0]) != 0x80 || bytes[1] < 2 || bytes[1] > 5) {
    fail("expects a pickle of protocol 2 to 5");
    return false;
  }
  position = 2;
  while (message.empty() && !stopped) {
    at = position;
    if (position == bytes.size()) {
      fail("expects the end of the pickle, but the file ends");
      break;
    }
    uint8_t opcode = uint8_t(bytes[position++]);
    if (opcode == '.')
      stopped = true;
    else if (!readFixed(opcode) && !readSized(opcode) && !readContainer(opcode) && !readStack(opcode) &&
             !readCall(opcode))
      fail("has opcode " + std::to_string(opcode) + ", which no pickler of protocol 2 to 5 writes");
  }
  if (message.empty() && (stack.size() != 1 || !marks.empty()))
    fail("ends with " + std::to_string(stack.size()) + " values on the stack, not with one");
  if (message.empty() && position != bytes.size())
    fail("ends " + std::to_string(bytes.size() - position) + " bytes before the file does");
  if (!message.empty())
    return false;
  tables.root = stack.back();
  flatten();
  return true;
}
