//===- Merges.cpp - Byte-pair merges ----------------------------------------------------===//
//
// The tokens of a piece are a list whose members are merged away; a heap has the pairs that could be merged.
// A pair that is gone when its turn comes, because a neighbour was merged before, is passed over: the token
// that it would have begun with, or the one behind that, is another by then.
//
//===---------------------------------------------------------------------------===//
#include "Merges.h"

#include <functional>
#include <queue>
#include <tuple>

namespace ds::rt {

void Merges::add(uint32_t left, uint32_t right, uint32_t merged) {
  merges[keyOf(left, right)] = {count++, merged};
}

std::vector<uint32_t> Merges::apply(const std::vector<uint32_t> &tokens) const {
  constexpr size_t kNone = SIZE_MAX;
  struct Member {
    uint32_t token;
    size_t before, behind; ///< kNone at the ends
    bool isThere = true;
  };
  std::vector<Member> list;
  for (size_t i = 0; i < tokens.size(); ++i)
    list.push_back({tokens[i], i == 0 ? kNone : i - 1, i + 1 == tokens.size() ? kNone : i + 1});
  using Candidate = std::tuple<uint32_t, size_t, uint64_t>; // rank, first member, pair
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](size_t first) {
    if (first == kNone || list[first].behind == kNone)
      return;
    const uint64_t key = keyOf(list[first].token, list[list[first].behind].token);
    if (const auto found = merges.find(key); found != merges.end())
      candidates.emplace(found->second.rank, first, key);
  };
  for (size_t i = 0; i < list.size(); ++i)
    consider(i);
  while (!candidates.empty()) {
    const auto [rank, first, key] = candidates.top();
    candidates.pop();
    Member &left = list[first];
    if (!left.isThere || left.behind == kNone || keyOf(left.token, list[left.behind].token) != key)
      continue;
    Member &right = list[left.behind];
    left.token = merges.at(key).token;
    right.isThere = false;
    left.behind = right.behind;
    if (left.behind != kNone)
      list[left.behind].before = first;
    consider(left.before);
    consider(first);
  }
  std::vector<uint32_t> merged;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].isThere)
      merged.push_back(list[i].token);
  return merged;
}

} // namespace ds::rt
