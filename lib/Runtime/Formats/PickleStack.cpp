//===- PickleStack.cpp - The bytes, the stack and the values of a pickle --------===//

#include "PickleMachine.h"

#include <cstring>

using namespace ds;
using namespace ds::rt;

bool PickleMachine::take(size_t count, std::string_view &out) {
  std::string_view rest = std::string_view(tables.bytes).substr(position);
  if (count > rest.size()) {
    fail("expects " + std::to_string(count) + " more bytes, but the file has " + std::to_string(rest.size()));
    return false;
  }
  out = rest.substr(0, count);
  position += count;
  return true;
}

bool PickleMachine::takeLine(std::string_view &out) {
  size_t end = tables.bytes.find('\n', position);
  if (end == std::string::npos) {
    fail("expects a line, but the file ends");
    return false;
  }
  out = std::string_view(tables.bytes).substr(position, end - position);
  position = end + 1;
  return true;
}

bool PickleMachine::takeNumber(size_t width, uint64_t &value) {
  std::string_view bytes;
  if (!take(width, bytes))
    return false;
  value = 0;
  memcpy(&value, bytes.data(), width); // little-endian, as the machines are that this runs on
  return true;
}

PickleRef PickleMachine::pop() {
  if (stack.size() <= (marks.empty() ? 0 : marks.back())) {
    fail("takes a value from an empty stack");
    return 0; // None
  }
  PickleRef ref = stack.back();
  stack.pop_back();
  return ref;
}

PickleRef PickleMachine::top() {
  PickleRef ref = pop();
  if (message.empty())
    push(ref);
  return ref;
}

bool PickleMachine::popMark(size_t &begin) {
  if (marks.empty()) {
    fail("expects a mark on the stack, but there is none");
    return false;
  }
  begin = marks.back();
  marks.pop_back();
  return true;
}

PickleRef PickleMachine::add(PickleKind kind, uint8_t flag) {
  PickleNode node;
  node.kind = kind;
  node.flag = flag;
  tables.nodes.push_back(node);
  return PickleRef(tables.nodes.size() - 1);
}

PickleRef PickleMachine::addText(PickleKind kind, std::string_view text) {
  PickleRef ref = add(kind);
  tables.nodes[ref].count = uint32_t(text.size());
  tables.nodes[ref].setWord(uint64_t(text.data() - tables.bytes.data()));
  return ref;
}

PickleRef PickleMachine::addPair(PickleKind kind, PickleRef first, PickleRef last, uint8_t flag) {
  PickleRef ref = add(kind, flag);
  tables.nodes[ref].first = first;
  tables.nodes[ref].last = last;
  return ref;
}

bool PickleMachine::pushNumber(PickleKind kind, uint64_t word) {
  push(add(kind));
  tables.nodes[stack.back()].setWord(word);
  return true;
}

bool PickleMachine::pushText(PickleKind kind, size_t lengthWidth) {
  uint64_t length = 0;
  std::string_view text;
  if (takeNumber(lengthWidth, length) && take(length, text))
    push(addText(kind, text));
  return true;
}

void PickleMachine::append(PickleRef container, PickleRef value) {
  uint32_t link = uint32_t(tables.links.size());
  tables.links.push_back({value, kNoRef});
  PickleNode &node = tables.nodes[container];
  if (node.count == 0)
    node.first = link;
  else
    tables.links[node.last].next = link;
  node.last = link;
  ++node.count;
}

/// A container of all that is on the stack from `begin` on.
PickleRef PickleMachine::addContainer(PickleKind kind, size_t begin) {
  PickleRef ref = add(kind);
  for (size_t i = begin; i < stack.size(); ++i)
    append(ref, stack[i]);
  stack.resize(begin);
  return ref;
}

std::vector<PickleRef> PickleMachine::peek(PickleRef container, size_t limit) const {
  std::vector<PickleRef> found;
  const PickleNode &node = tables.nodes[container];
  for (uint32_t i = 0, link = node.first; i < node.count && i < limit; ++i, link = tables.links[link].next)
    found.push_back(tables.links[link].value);
  return found;
}
