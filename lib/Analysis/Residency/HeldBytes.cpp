//===- HeldBytes.cpp - Bytes at moments, with sums over ranges and their maximum ==//
#include "HeldBytes.h"

#include <algorithm>
#include <limits>

namespace ds::analysis::detail {

static constexpr int64_t kNothing = std::numeric_limits<int64_t>::min();

HeldBytes::HeldBytes(const std::vector<int64_t> &bytes)
    : count(uint32_t(bytes.size())), nodes(4 * bytes.size() + 1) {
  if (count > 0)
    build({1, 0, count}, bytes);
}

void HeldBytes::build(Range at, const std::vector<int64_t> &bytes) {
  if (at.end - at.begin == 1) {
    nodes[at.index].most = bytes[at.begin];
    return;
  }
  const uint32_t middle = at.begin + (at.end - at.begin) / 2;
  build({2 * at.index, at.begin, middle}, bytes);
  build({2 * at.index + 1, middle, at.end}, bytes);
  nodes[at.index].most = std::max(nodes[2 * at.index].most, nodes[2 * at.index + 1].most);
}

void HeldBytes::add(uint32_t begin, uint32_t end, int64_t bytes) {
  if (begin < end)
    add({1, 0, count}, begin, end, bytes);
}

void HeldBytes::add(Range at, uint32_t begin, uint32_t end, int64_t bytes) {
  if (begin >= at.end || end <= at.begin)
    return;
  Node &node = nodes[at.index];
  if (begin <= at.begin && at.end <= end) {
    node.most += bytes, node.added += bytes;
    return;
  }
  const uint32_t middle = at.begin + (at.end - at.begin) / 2;
  add({2 * at.index, at.begin, middle}, begin, end, bytes);
  add({2 * at.index + 1, middle, at.end}, begin, end, bytes);
  node.most = std::max(nodes[2 * at.index].most, nodes[2 * at.index + 1].most) + node.added;
}

int64_t HeldBytes::mostIn(uint32_t begin, uint32_t end) const {
  return begin < end ? mostIn({1, 0, count}, begin, end) : kNothing;
}

int64_t HeldBytes::mostIn(Range at, uint32_t begin, uint32_t end) const {
  if (begin >= at.end || end <= at.begin)
    return kNothing;
  const Node &node = nodes[at.index];
  if (begin <= at.begin && at.end <= end)
    return node.most;
  const uint32_t middle = at.begin + (at.end - at.begin) / 2;
  // At least one half meets the range, so that nothing is added to kNothing alone.
  return std::max(mostIn({2 * at.index, at.begin, middle}, begin, end),
                  mostIn({2 * at.index + 1, middle, at.end}, begin, end)) +
         node.added;
}

} // namespace ds::analysis::detail
