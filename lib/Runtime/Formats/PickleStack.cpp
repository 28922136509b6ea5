//===- PickleStack.cpp - The bytes and the stack of a pickle that is read -------===//

#include "PickleStack.h"

#include <cstring>

using namespace ds;
using namespace ds::rt;

bool PickleInput::take(size_t count, std::string_view &out) {
  std::string_view rest = std::string_view(bytes).substr(position);
  if (count > rest.size()) {
    fault.fail("expects " + std::to_string(count) + " more bytes, but the file has " +
               std::to_string(rest.size()));
    return false;
  }
  out = rest.substr(0, count);
  position += count;
  return true;
}

bool PickleInput::takeLine(std::string_view &out) {
  size_t end = bytes.find('\n', position);
  if (end == std::string::npos) {
    fault.fail("expects a line, but the file ends");
    return false;
  }
  out = std::string_view(bytes).substr(position, end - position);
  position = end + 1;
  return true;
}

bool PickleInput::takeNumber(size_t width, uint64_t &value) {
  std::string_view taken;
  if (!take(width, taken))
    return false;
  value = 0;
  memcpy(&value, taken.data(), width); // little-endian, as the machines are that this runs on
  return true;
}

bool PickleInput::takeSized(size_t lengthWidth, std::string_view &out) {
  uint64_t length = 0;
  return takeNumber(lengthWidth, length) && take(length, out);
}

PickleRef PickleStack::pop() {
  if (refs.size() <= floor()) {
    fault.fail("takes a value from an empty stack");
    return PickleValues::kNone;
  }
  PickleRef ref = refs.back();
  refs.pop_back();
  return ref;
}

PickleRef PickleStack::top() {
  PickleRef ref = pop();
  if (!fault.isThere())
    push(ref);
  return ref;
}

bool PickleStack::popMark(size_t &begin) {
  if (marks.empty()) {
    fault.fail("expects a mark on the stack, but there is none");
    return false;
  }
  begin = marks.back();
  marks.pop_back();
  return true;
}

void PickleStack::drop() {
  if (!marks.empty() && marks.back() == refs.size())
    marks.pop_back();
  else
    pop();
}

bool PickleStack::remember(uint64_t index, size_t limit) {
  if (index >= limit)
    return fault.fail("remembers a value as number " + std::to_string(index) + " in a file of " +
                      std::to_string(limit) + " bytes");
  PickleRef ref = top();
  if (memo.size() <= index)
    memo.resize(index + 1, kNoRef);
  memo[index] = ref;
  return true;
}

bool PickleStack::recall(uint64_t index) {
  if (index >= memo.size() || memo[index] == kNoRef)
    return fault.fail("refers to value " + std::to_string(index) + ", which is not there");
  push(memo[index]);
  return true;
}
