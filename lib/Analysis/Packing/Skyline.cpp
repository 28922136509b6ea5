//===- Skyline.cpp - Packing from the bottom up ---------------------------------===//

#include "Skyline.h"

#include "ds/Support/Align.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace ds::analysis::detail {

namespace {

constexpr int64_t kNoWall = std::numeric_limits<int64_t>::max();

class Skyline {
public:
  Skyline(const std::vector<Item> &items, const Weights &weights, int32_t horizon, int64_t floor,
          Filling filling, int64_t &steps);
  std::vector<int64_t> run();

private:
  struct Valley {
    int32_t begin = 0, end = 0;
    int64_t height = 0, leftWall = kNoWall, rightWall = kNoWall;
  };
  using Score = std::tuple<int, double, int64_t>;

  Valley lowest() const;
  int32_t choose(const Valley &valley);
  Score score(int32_t id, const Valley &valley) const;
  void set(int32_t begin, int32_t end, int64_t height);
  void mergeAt(int32_t begin);
  size_t nextOpen(size_t at);

  const std::vector<Item> &items;
  const Weights &weights;
  Filling filling;
  int64_t &steps;
  struct Segment {
    int32_t end;
    int64_t height;
  };
  std::map<int32_t, Segment> outline;             ///< by begin
  std::set<std::pair<int64_t, int32_t>> byHeight; ///< (height, begin)
  std::vector<int32_t> sorted;                    ///< items by begin
  std::vector<size_t> skip;                       ///< position -> itself, or further on if placed
};

} // namespace

Skyline::Skyline(const std::vector<Item> &items, const Weights &weights, int32_t horizon, int64_t floor,
                 Filling filling, int64_t &steps)
    : items(items), weights(weights), filling(filling), steps(steps), sorted(items.size()),
      skip(items.size() + 1) {
  set(0, horizon, floor);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::iota(skip.begin(), skip.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return std::tuple(items[a].begin, -items[a].end, a) < std::tuple(items[b].begin, -items[b].end, b);
  });
}

size_t Skyline::nextOpen(size_t at) {
  while (skip[at] != at)
    at = skip[at] = skip[skip[at]];
  return at;
}

void Skyline::set(int32_t begin, int32_t end, int64_t height) {
  outline[begin] = {end, height};
  byHeight.insert({height, begin});
}

/// Joins the segment that begins at `begin` with the one before it if they are equally high.
void Skyline::mergeAt(int32_t begin) {
  auto here = outline.find(begin);
  if (here == outline.end() || here == outline.begin())
    return;
  auto before = std::prev(here);
  if (before->second.height != here->second.height)
    return;
  before->second.end = here->second.end;
  byHeight.erase({here->second.height, begin});
  outline.erase(here);
}

Skyline::Valley Skyline::lowest() const {
  auto here = outline.find(byHeight.begin()->second);
  Valley valley = {here->first, here->second.end, here->second.height, kNoWall, kNoWall};
  if (here != outline.begin())
    valley.leftWall = std::prev(here)->second.height;
  if (std::next(here) != outline.end())
    valley.rightWall = std::next(here)->second.height;
  return valley;
}

Skyline::Score Skyline::score(int32_t id, const Valley &valley) const {
  const Item &item = items[id];
  const double life = double((item.end - item.begin) * weights[id]);
  const int64_t top = valley.height + item.size;
  bool left = item.begin == valley.begin, right = item.end == valley.end;
  int level = (left && top == valley.leftWall) + (right && top == valley.rightWall);
  switch (filling) {
  case Filling::Longest:
    return {0, life, item.size};
  case Filling::Largest:
    return {0, life * double(item.size), item.size};
  case Filling::Touching:
    return {left + right, life, item.size};
  case Filling::Level:
    return {4 * level + left + right, life, item.size};
  }
  return {};
}

/// The position in `sorted` of the item for `valley`, or -1 if none fits between its walls.
int32_t Skyline::choose(const Valley &valley) {
  auto first = std::lower_bound(sorted.begin(), sorted.end(), valley.begin,
                                [&](int32_t id, int32_t begin) { return items[id].begin < begin; });
  int32_t best = -1;
  Score bestScore;
  for (size_t at = nextOpen(size_t(first - sorted.begin())); at < sorted.size(); at = nextOpen(at + 1)) {
    const Item &item = items[sorted[at]];
    steps += 4;
    if (item.begin >= valley.end)
      break;
    if (item.end > valley.end)
      continue;
    Score here = score(sorted[at], valley);
    if (best < 0 || here > bestScore)
      best = int32_t(at), bestScore = here;
  }
  return best;
}

std::vector<int64_t> Skyline::run() {
  std::vector<int64_t> offsets(items.size());
  for (size_t left = items.size(); left > 0;) {
    Valley valley = lowest();
    steps += 150;
    byHeight.erase({valley.height, valley.begin});
    outline.erase(valley.begin);
    int32_t at = choose(valley);
    if (at < 0) {
      set(valley.begin, valley.end, std::min(valley.leftWall, valley.rightWall));
      mergeAt(valley.end), mergeAt(valley.begin);
      continue;
    }
    const Item &item = items[sorted[at]];
    skip[at] = size_t(at) + 1;
    --left;
    int64_t lo = alignTo(valley.height, item.align);
    offsets[sorted[at]] = lo;
    if (valley.begin < item.begin)
      set(valley.begin, item.begin, valley.height);
    set(item.begin, item.end, lo + item.size);
    if (item.end < valley.end)
      set(item.end, valley.end, valley.height);
    mergeAt(valley.end), mergeAt(item.end), mergeAt(item.begin), mergeAt(valley.begin);
  }
  return offsets;
}

std::vector<int64_t> fillValleys(const std::vector<Item> &items, const Weights &weights, int32_t horizon,
                                 int64_t floor, Filling filling, int64_t &steps) {
  return Skyline(items, weights, horizon, floor, filling, steps).run();
}

} // namespace ds::analysis::detail
