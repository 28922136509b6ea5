//===- PickleMachine.cpp - The stack machine that pickles are programs of -------===//
//
// Opcodes are those of protocols 2 to 5 as picklers write them. What only older protocols and only
// hand-written pickles have (text numbers, INST, extension codes, buffers beside the file) is refused.
//
//===---------------------------------------------------------------------------===//

#include "PickleMachine.h"

#include "Files/Text.h"

#include <cstring>
#include <memory>
#include <new>

using namespace ds;
using namespace ds::rt;

/// A double's bits from big-endian bytes.
static uint64_t swapped(uint64_t value) { return __builtin_bswap64(value); }

bool PickleMachine::readFixed(uint8_t opcode) {
  uint64_t value = 0;
  switch (opcode) {
  case 'N':
    return push(PickleValues::kNone);
  case 0x88: // NEWTRUE
    return push(PickleValues::kTrue);
  case 0x89: // NEWFALSE
    return push(PickleValues::kFalse);
  case 'J': // BININT
    return !input.takeNumber(4, value) || pushNumber(PickleKind::Int, uint64_t(int64_t(int32_t(value))));
  case 'K': // BININT1
    return !input.takeNumber(1, value) || pushNumber(PickleKind::Int, value);
  case 'M': // BININT2
    return !input.takeNumber(2, value) || pushNumber(PickleKind::Int, value);
  case 'G': // BINFLOAT
    return !input.takeNumber(8, value) || pushNumber(PickleKind::Float, swapped(value));
  case ')':
    return push(PickleValues::kEmptyTuple);
  case ']':
    return push(values.add(PickleKind::List));
  case '}':
    return push(values.add(PickleKind::Dict));
  case 0x8f: // EMPTY_SET
    return push(values.add(PickleKind::Set));
  default:
    return false;
  }
}

/// An integer of any length, little-endian and signed; what does not fit 64 bits is kept as a name only.
bool PickleMachine::pushLong(size_t lengthWidth) {
  std::string_view digits;
  if (!input.takeSized(lengthWidth, digits))
    return true;
  const size_t length = digits.size();
  if (length > 8)
    return push(values.addText(PickleKind::LongInt, digits));
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
  if (values.kindOf(target) == PickleKind::Object) {
    if (values.partsOf(target).items == kNoRef) {
      PickleRef items = values.add(kind);
      values.partsOf(target).items = items;
    }
    target = values.partsOf(target).items;
  }
  if (values.kindOf(target) == kind && target != PickleValues::kEmptyTuple &&
      !(kind == PickleKind::Set && values.tables.nodes[target].flag))
    return target;
  fault.fail("adds to a value that is no list, dict or set");
  return kNoRef;
}

/// True: the opcode was of the family.
bool PickleMachine::push(PickleRef ref) {
  stack.push(ref);
  return true;
}

bool PickleMachine::pushText(PickleKind kind, size_t lengthWidth) {
  std::string_view text;
  return !input.takeSized(lengthWidth, text) || push(values.addText(kind, text));
}

/// A container of all that is on the stack from `begin` on.
bool PickleMachine::pushContainer(PickleKind kind, size_t begin) {
  const PickleRef ref = values.add(kind);
  for (size_t i = begin; i < stack.refs.size(); ++i)
    values.append(ref, stack.refs[i]);
  stack.refs.resize(begin);
  return push(ref);
}

/// Adds all from `begin` on to the container below.
bool PickleMachine::extend(PickleKind kind, size_t begin) {
  const size_t count = stack.refs.size() - begin;
  if (kind == PickleKind::Dict && count % 2 != 0)
    return fault.fail("adds a key without a value to a dict");
  if (begin <= stack.floor())
    return fault.fail("takes a value from an empty stack");
  const PickleRef target = itemsOf(stack.refs[begin - 1], kind);
  if (target == kNoRef)
    return true;
  for (size_t i = begin; i < stack.refs.size(); ++i)
    values.append(target, stack.refs[i]);
  stack.refs.resize(begin);
  return true;
}

bool PickleMachine::readContainer(uint8_t opcode) {
  const size_t size = stack.refs.size(), held = size - stack.floor();
  size_t begin = 0;
  switch (opcode) {
  case 0x85: // TUPLE1
  case 0x86: // TUPLE2
  case 0x87: // TUPLE3
    if (held < size_t(opcode - 0x84))
      return fault.fail("takes a value from an empty stack");
    return pushContainer(PickleKind::Tuple, size - (opcode - 0x84));
  case 't': // TUPLE
    return !stack.popMark(begin) || pushContainer(PickleKind::Tuple, begin);
  case 'l': // LIST
    return !stack.popMark(begin) || pushContainer(PickleKind::List, begin);
  case 0x91: // FROZENSET
    return !stack.popMark(begin) || pushContainer(PickleKind::Set, begin);
  case 'a': // APPEND
    return held < 2 ? fault.fail("takes a value from an empty stack") : extend(PickleKind::List, size - 1);
  case 'e': // APPENDS
    return !stack.popMark(begin) || extend(PickleKind::List, begin);
  case 's': // SETITEM
    return held < 3 ? fault.fail("takes a value from an empty stack") : extend(PickleKind::Dict, size - 2);
  case 'u': // SETITEMS
    return !stack.popMark(begin) || extend(PickleKind::Dict, begin);
  case 0x90: // ADDITEMS
    return !stack.popMark(begin) || extend(PickleKind::Set, begin);
  default:
    return false;
  }
}

bool PickleMachine::readStack(uint8_t opcode) {
  const size_t fileSize = input.bytes.size();
  uint64_t value = 0;
  size_t begin = 0;
  switch (opcode) {
  case '(': // MARK
    stack.mark();
    return true;
  case '0': // POP
    stack.drop();
    return true;
  case '1': // POP_MARK
    if (stack.popMark(begin))
      stack.refs.resize(begin);
    return true;
  case '2': // DUP
    return push(stack.top());
  case 'q': // BINPUT
    return !input.takeNumber(1, value) || stack.remember(value, fileSize);
  case 'r': // LONG_BINPUT
    return !input.takeNumber(4, value) || stack.remember(value, fileSize);
  case 0x94: // MEMOIZE
    return stack.remember(stack.remembered(), fileSize);
  case 'h': // BINGET
    return !input.takeNumber(1, value) || stack.recall(value);
  case 'j': // LONG_BINGET
    return !input.takeNumber(4, value) || stack.recall(value);
  case 0x95: // FRAME: how much a reader may load at once
    if (input.takeNumber(8, value) && value > input.left())
      return fault.fail("has a frame of " + std::to_string(value) + " bytes, but the file has " +
                        std::to_string(input.left()));
    return true;
  default:
    return false;
  }
}

/// What a class would be given after it was made. Attributes of containers and tensors are of no use here.
bool PickleMachine::setState() {
  const PickleRef state = stack.pop(), target = stack.top();
  switch (values.kindOf(target)) {
  case PickleKind::Object:
    values.partsOf(target).state = state;
    return true;
  case PickleKind::Dict:
  case PickleKind::List:
  case PickleKind::Set:
  case PickleKind::Tensor:
    return true;
  default:
    return fault.fail("sets the attributes of a value that has none");
  }
}

bool PickleMachine::readCall(uint8_t opcode) {
  std::string_view module, name;
  PickleRef first, second;
  switch (opcode) {
  case 'c': // GLOBAL
    if (!input.takeLine(module) || !input.takeLine(name))
      return true;
    first = values.addText(PickleKind::Text, module);
    second = values.addText(PickleKind::Text, name);
    return push(values.addPair(PickleKind::Global, first, second));
  case 0x93: // STACK_GLOBAL
    second = stack.pop(), first = stack.pop();
    if (values.kindOf(first) != PickleKind::Text || values.kindOf(second) != PickleKind::Text)
      return fault.fail("names a global by something that is no text");
    return push(values.addPair(PickleKind::Global, first, second));
  case 'R': // REDUCE
    second = stack.pop(), first = stack.pop();
    if (const PickleRef made = calls.call(first, second); !fault.isThere())
      stack.push(made);
    return true;
  case 0x92: // NEWOBJ_EX; its keyword arguments are dropped
    stack.pop();
    [[fallthrough]];
  case 0x81: // NEWOBJ
    second = stack.pop(), first = stack.pop();
    return push(values.addObject(first, second));
  case 'b': // BUILD
    return setState();
  case 'Q': // BINPERSID
    if (const PickleRef made = calls.storage(stack.pop()); !fault.isThere())
      stack.push(made);
    return true;
  default:
    return false;
  }
}

bool PickleMachine::run() {
  const std::string &bytes = input.bytes;
  if (bytes.size() < 2 || uint8_t(bytes[0]) != 0x80 || bytes[1] < 2 || bytes[1] > 5) {
    fault.fail("expects a pickle of protocol 2 to 5");
    return false;
  }
  input.position = 2;
  for (bool stopped = false; !fault.isThere() && !stopped;) {
    at = input.position;
    if (input.left() == 0) {
      fault.fail("expects the end of the pickle, but the file ends");
      break;
    }
    const auto opcode = static_cast<uint8_t>(bytes[input.position++]);
    if (opcode == '.')
      stopped = true;
    else if (!readFixed(opcode) && !readSized(opcode) && !readContainer(opcode) && !readStack(opcode) &&
             !readCall(opcode))
      fault.fail("has opcode " + std::to_string(opcode) + ", which no pickler of protocol 2 to 5 writes");
  }
  if (!fault.isThere() && (stack.refs.size() != 1 || stack.isMarked()))
    fault.fail("ends with " + std::to_string(stack.refs.size()) + " values on the stack, not with one");
  if (!fault.isThere() && input.left() != 0)
    fault.fail("ends " + std::to_string(input.left()) + " bytes before the file does");
  if (fault.isThere())
    return false;
  values.tables.root = stack.refs.back();
  values.flatten();
  return true;
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
    return corrupt("the pickle, at byte " + std::to_string(machine.at) + ", " + machine.message());
  return Pickle(std::move(tables));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the pickle of " + quote(name), "free memory"};
}
