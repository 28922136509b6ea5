//===- Boxing.cpp - Items that fit together become one item ---------------------===//

#include "Boxing.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace ds::analysis::detail {

Boxing::Boxing(const std::vector<Item> &items, BoxOrder order) : numItems(items.size()) {
  nodes.reserve(2 * items.size());
  for (const Item &item : items)
    nodes.push_back({item, {}});
  roots.resize(items.size());
  std::iota(roots.begin(), roots.end(), 0);
  if (order == BoxOrder::StacksFirst)
    stack(INT32_MAX);
  // A stack is made where it makes a chain possible; only when nothing else helps, of whatever lives equally
  // long.
  while (chain() || turn() || stackForChains() || stack(2) || stack(INT32_MAX))
    ;
}

/// Drops the joined roots and appends the new ones.
void Boxing::replaceRoots(const std::vector<char> &joined, std::vector<int32_t> added) {
  std::erase_if(roots, [&](int32_t root) { return joined[root]; });
  roots.insert(roots.end(), added.begin(), added.end());
}

/// Joins runs of equal size in which each begins as the one before ends. Returns whether there was one.
bool Boxing::chain() {
  auto key = [&](int32_t id) { return std::tuple(nodes[id].item.size, nodes[id].item.begin, id); };
  std::sort(roots.begin(), roots.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  std::vector<char> joined(nodes.size());
  std::vector<int32_t> added;
  for (int32_t head : roots) {
    if (joined[head])
      continue;
    Node box = nodes[head];
    std::vector<std::pair<int32_t, int64_t>> members = {{head, 0}};
    while (true) {
      auto next = std::lower_bound(roots.begin(), roots.end(), std::tuple(box.item.size, box.item.end, 0),
                                   [&](int32_t id, const auto &value) { return key(id) < value; });
      auto fits = [&] {
        return next != roots.end() && nodes[*next].item.size == box.item.size &&
               nodes[*next].item.begin == box.item.end;
      };
      while (fits() && joined[*next])
        ++next;
      if (!fits())
        break;
      joined[*next] = true;
      members.push_back({*next, 0});
      box.item.end = nodes[*next].item.end;
      box.item.align = std::max(box.item.align, nodes[*next].item.align);
    }
    if (members.size() == 1)
      continue;
    joined[head] = true;
    added.push_back(int32_t(nodes.size()));
    nodes.push_back({box.item, std::move(members)});
  }
  replaceRoots(joined, added);
  return !added.empty();
}

/// Sorts the roots so that those of one lifetime are neighbours and returns the limits of the runs of two or
/// more. The most strictly aligned comes first: sizes are multiples of the alignment, so that a stack needs
/// no padding.
std::vector<std::pair<size_t, size_t>> Boxing::equalLifetimes() {
  auto key = [&](int32_t id) {
    const Item &item = nodes[id].item;
    return std::tuple(item.begin, item.end, -item.align, -item.size, id);
  };
  std::sort(roots.begin(), roots.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t first = 0, last; first < roots.size(); first = last) {
    const Item &item = nodes[roots[first]].item;
    for (last = first + 1; last < roots.size(); ++last)
      if (nodes[roots[last]].item.begin != item.begin || nodes[roots[last]].item.end != item.end)
        break;
    if (last - first > 1)
      runs.push_back({first, last});
  }
  return runs;
}

/// The roots `members` as one box, in this order from the bottom; the sizes below each are multiples of its
/// alignment.
void Boxing::addStack(std::vector<int32_t> members, std::vector<char> &joined, std::vector<int32_t> &added) {
  Item box = nodes[members[0]].item;
  box.size = 0;
  std::vector<std::pair<int32_t, int64_t>> children;
  for (int32_t member : members) {
    children.push_back({member, box.size});
    box.size += nodes[member].item.size;
    joined[member] = true;
  }
  added.push_back(int32_t(nodes.size()));
  nodes.push_back({box, std::move(children)});
}

/// Joins runs of at most `longest` roots that live exactly equally long. Returns whether there were any.
bool Boxing::stack(size_t longest) {
  std::vector<char> joined(nodes.size());
  std::vector<int32_t> added;
  for (auto [first, last] : equalLifetimes()) {
    if (last - first > longest)
      continue;
    std::vector<int32_t> members;
    int64_t size = 0;
    for (size_t i = first; i < last; ++i)
      if (const Item &item = nodes[roots[i]].item; size % item.align == 0) { // a box may end unaligned
        members.push_back(roots[i]);
        size += item.size;
      }
    if (members.size() > 1)
      addStack(std::move(members), joined, added);
  }
  replaceRoots(joined, added);
  return !added.empty();
}

/// Joins pairs that live equally long and together are as large as something that ends where they begin or
/// begins where they end. Returns whether there were any.
bool Boxing::stackForChains() {
  constexpr size_t kLongestRun = 64; // pairs are tried; longer runs are no puzzle
  std::vector<std::pair<int32_t, int64_t>> begins, ends;
  for (int32_t root : roots) {
    begins.push_back({nodes[root].item.begin, nodes[root].item.size});
    ends.push_back({nodes[root].item.end, nodes[root].item.size});
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::vector<char> joined(nodes.size());
  std::vector<int32_t> added;
  for (auto [first, last] : equalLifetimes())
    for (size_t i = first; i < last && last - first <= kLongestRun; ++i)
      for (size_t j = i + 1; j < last && !joined[roots[i]]; ++j) {
        const Item &a = nodes[roots[i]].item, &b = nodes[roots[j]].item;
        if (!joined[roots[j]] && a.size % b.align == 0 &&
            (std::binary_search(ends.begin(), ends.end(), std::pair(a.begin, a.size + b.size)) ||
             std::binary_search(begins.begin(), begins.end(), std::pair(a.end, a.size + b.size))))
          addStack({roots[i], roots[j]}, joined, added);
      }
  replaceRoots(joined, added);
  return !added.empty();
}

void Boxing::addPinwheel(const Pinwheel &wheel, std::vector<char> &joined, std::vector<int32_t> &added) {
  const Item &longLeft = nodes[wheel.longLeft].item, &right = nodes[wheel.right].item;
  Item box = longLeft;
  box.end = right.end;
  box.size = longLeft.size + nodes[wheel.left].item.size;
  std::vector<std::pair<int32_t, int64_t>> children = {{wheel.longLeft, 0},
                                                       {wheel.right, 0},
                                                       {wheel.left, longLeft.size},
                                                       {wheel.middle, longLeft.size},
                                                       {wheel.longRight, right.size}};
  for (auto [child, rise] : children) {
    if (rise % nodes[child].item.align != 0)
      return;
    box.align = std::max(box.align, nodes[child].item.align);
  }
  for (auto [child, rise] : children)
    joined[child] = true;
  added.push_back(int32_t(nodes.size()));
  nodes.push_back({box, std::move(children)});
}

/// Joins five roots that no straight cut parts: a middle, and around it one that begins before and ends with
/// it, one that begins with it and ends after, and what is left beside these. Returns whether there were any.
bool Boxing::turn() {
  constexpr size_t kMost = 32; // of one begin or end are looked at
  std::unordered_map<int32_t, std::vector<int32_t>> begins, ends;
  std::sort(roots.begin(), roots.end());
  for (int32_t root : roots) {
    begins[nodes[root].item.begin].push_back(root);
    ends[nodes[root].item.end].push_back(root);
  }
  std::vector<char> joined(nodes.size());
  std::vector<int32_t> added;
  auto find = [&](auto &byTime, int32_t time, auto suits) {
    std::vector<int32_t> &list = byTime[time];
    for (size_t i = 0; i < std::min(kMost, list.size()); ++i)
      if (!joined[list[i]] && suits(list[i], nodes[list[i]].item))
        return true;
    return false;
  };
  for (int32_t middle : roots) {
    const Item m = nodes[middle].item;
    if (joined[middle])
      continue;
    find(ends, m.end, [&](int32_t longLeft, const Item &a) {
      return a.begin < m.begin && find(begins, a.begin, [&](int32_t left, const Item &d) {
               return d.end == m.begin && find(begins, m.end, [&](int32_t right, const Item &b) {
                        return b.size == a.size + m.size &&
                               find(begins, m.begin, [&](int32_t longRight, const Item &c) {
                                 if (c.end != b.end || c.size != a.size + d.size - b.size)
                                   return false;
                                 addPinwheel({middle, longLeft, left, right, longRight}, joined, added);
                                 return true;
                               });
                      });
             });
    });
  }
  replaceRoots(joined, added);
  return !added.empty();
}

std::vector<Item> Boxing::rootItems() const {
  std::vector<Item> items;
  for (int32_t root : roots)
    items.push_back(nodes[root].item);
  return items;
}

std::vector<int64_t> Boxing::expand(const std::vector<int64_t> &rootOffsets) const {
  std::vector<int64_t> offsets(nodes.size());
  for (size_t i = 0; i < roots.size(); ++i)
    offsets[roots[i]] = rootOffsets[i];
  for (size_t box = nodes.size(); box-- > numItems;) {
    for (auto [child, rise] : nodes[box].children)
      offsets[child] = offsets[box] + rise;
  }
  offsets.resize(numItems);
  return offsets;
}

} // namespace ds::analysis::detail
