//===- PickleValues.cpp - Makes the values of a pickle while it is read --------===//

#include "PickleValues.h"

using namespace ds;
using namespace ds::rt;

PickleValues::PickleValues(PickleTables &tables) : tables(tables) {
  add(PickleKind::None);
  add(PickleKind::Bool, 0);
  add(PickleKind::Bool, 1);
  add(PickleKind::Tuple);
}

PickleRef PickleValues::add(PickleKind kind, uint8_t flag) {
  PickleNode node;
  node.kind = kind;
  node.flag = flag;
  tables.nodes.push_back(node);
  return PickleRef(tables.nodes.size() - 1);
}

PickleRef PickleValues::addNumber(PickleKind kind, uint64_t word) {
  const PickleRef ref = add(kind);
  tables.nodes[ref].setWord(word);
  return ref;
}

PickleRef PickleValues::addText(PickleKind kind, std::string_view text) {
  PickleRef ref = add(kind);
  tables.nodes[ref].count = uint32_t(text.size());
  tables.nodes[ref].setWord(uint64_t(text.data() - tables.bytes.data()));
  return ref;
}

PickleRef PickleValues::addPair(PickleKind kind, PickleRef first, PickleRef last, uint8_t flag) {
  PickleRef ref = add(kind, flag);
  tables.nodes[ref].first = first;
  tables.nodes[ref].last = last;
  return ref;
}

PickleRef PickleValues::addObject(PickleRef callee, PickleRef arguments) {
  const PickleRef ref = addPair(PickleKind::Object, callee, arguments);
  tables.nodes[ref].count = kNoRef;
  return ref;
}

void PickleValues::append(PickleRef container, PickleRef value) {
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

PickleObject &PickleValues::partsOf(PickleRef object) {
  PickleNode &node = tables.nodes[object];
  if (node.count == kNoRef) {
    node.count = uint32_t(tables.objects.size());
    tables.objects.emplace_back();
  }
  return tables.objects[node.count];
}

std::vector<PickleRef> PickleValues::peek(PickleRef container, size_t limit) const {
  std::vector<PickleRef> found;
  const PickleNode &node = tables.nodes[container];
  for (uint32_t i = 0, link = node.first; i < node.count && i < limit; ++i, link = tables.links[link].next)
    found.push_back(tables.links[link].value);
  return found;
}

bool PickleValues::isGlobal(PickleRef ref, std::string_view module, std::string_view name) const {
  return kindOf(ref) == PickleKind::Global && tables.nameOf(ref) == std::pair(module, name);
}

void PickleValues::flatten() {
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
