//===- ConflictSearch.cpp - Packing below a given height, with backjumping ---------===//

#include "ConflictSearch.h"

#include "ItemTimes.h"
#include "Random.h"
#include "Valley.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

namespace {

constexpr int64_t kMovesPerItem = 4; // a search that goes wrong does so early; another order helps more

/// Times [begin, end) on which a failure depends; a hull, which errs towards jumping less far.
struct Span {
  int32_t begin = std::numeric_limits<int32_t>::max(), end = std::numeric_limits<int32_t>::min();
  void join(const Span &other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
  }
  bool meets(const Item &item) const { return begin < item.end && item.begin < end; }
};

/// Size: one search; its tables change together when an item is placed, and go back together by the
/// trail.
class ConflictSearch {
public:
  ConflictSearch(const std::vector<Item> &items, int64_t floor, int64_t top, uint32_t seed, int64_t endSteps,
                 int64_t &steps);
  bool run();
  std::vector<int64_t> offsets;

private:
  /// What can be taken back: a valley that rose by `amount`, or (if item >= 0) an item that was excluded from
  /// heights below its new minimum; `amount` is the old one.
  struct Change {
    int32_t item, begin, end;
    int64_t amount;
  };
  /// What was done before an item was placed, and that item. There are as many as items: a list, for the
  /// stack has no room for those of a long model.
  struct Level {
    size_t mark;      ///< of the trail
    Span reason = {}; ///< the times on which failures so far depend
    int32_t item = -1;
    int64_t ground = 0; ///< under the item
  };

  void prioritize(uint32_t seed);
  Valley lowestValley();
  int32_t choose(const Valley &valley, int64_t &leastNeed);
  bool canLoseBelow(const Item &item, int64_t bytes) const;
  bool rise(const Valley &valley, int64_t leastNeed);
  void place(int32_t id, int64_t ground);
  void unplace(int32_t id, int64_t ground);
  bool search();
  bool jumpBack();
  void undo(size_t mark);

  std::vector<Item> items; ///< their times are indices of `height`
  int64_t movesLeft;
  int64_t endSteps;
  int64_t &steps;
  std::vector<double> priority; ///< by item; the highest is tried first
  double touchBonus = 0;      ///< for each wall of the valley that an item touches, and more for a level top
  std::vector<int32_t> order; ///< items by begin
  std::vector<int32_t> firstAt;                    ///< of `order`, by begin
  std::vector<int64_t> height, mayLose, minHeight; ///< bytes, by time, time and item
  std::vector<uint8_t> isPlaced;                   ///< by item
  size_t open;                                     ///< items that are not placed
  std::vector<Change> trail;
  std::vector<Level> levels;
};

} // namespace

ConflictSearch::ConflictSearch(const std::vector<Item> &given, int64_t floor, int64_t top, uint32_t seed,
                               int64_t endSteps, int64_t &steps)
    : offsets(given.size()), items(given), movesLeft(kMovesPerItem * int64_t(given.size())),
      endSteps(endSteps), steps(steps), minHeight(given.size()), isPlaced(given.size()), open(given.size()) {
  for (const Item &item : items)
    priority.push_back(item.end - item.begin); // ops, before they become ranks
  const size_t count = rankTimes(items);
  height.assign(count, floor);
  mayLose.assign(count, top - floor);
  for (const Item &item : items) {
    for (int32_t time = item.begin; time < item.end; ++time)
      mayLose[time] -= item.size;
    steps += item.end - item.begin + 40;
  }
  prioritize(seed);
  order.resize(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(items[a].begin, -priority[a], a) < std::tuple(items[b].begin, -priority[b], b);
  });
  firstAt = startsByBegin(items, height.size());
}

/// Every second order prefers what touches walls; among equals it is lifetime, area, or between the two.
void ConflictSearch::prioritize(uint32_t seed) {
  constexpr double kPowersOfSize[] = {0, 1, 0.5};
  const double power = kPowersOfSize[seed / 2 % 3];
  Random random(seed);
  double most = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const double noise = double(random.below(1024)) / 1024;
    priority[i] *= (power == 0 ? 1.0 : power == 1 ? double(items[i].size) : std::sqrt(double(items[i].size)));
    priority[i] *= seed < 6 ? 1 : 1 + 0.3 * noise; // 30 %: of 10 to 100 the number least matters here
    most = std::max(most, priority[i]);
  }
  touchBonus = seed % 2 ? 2 * most : 0;
}

Valley ConflictSearch::lowestValley() {
  steps += int64_t(height.size()) / 4;
  return valleyAt(height, int32_t(std::min_element(height.begin(), height.end()) - height.begin()));
}

/// Whether `bytes` more may be lost at all times of `item`.
bool ConflictSearch::canLoseBelow(const Item &item, int64_t bytes) const {
  return bytes == 0 || *std::min_element(mayLose.begin() + item.begin, mayLose.begin() + item.end) >= bytes;
}

/// The item to place on the valley's ground, or -1 if none can; `leastNeed` becomes the least height of an
/// item that fits between the walls and is not to lie here.
int32_t ConflictSearch::choose(const Valley &valley, int64_t &leastNeed) {
  int32_t best = -1;
  double bestScore = -1;
  leastNeed = kNoWall;
  for (int32_t at = firstAt[valley.begin]; at < firstAt[valley.end]; ++at) {
    const int32_t id = order[at];
    const Item &item = items[id];
    if (isPlaced[id] || item.end > valley.end)
      continue;
    const int64_t lost = alignTo(valley.height, item.align) - valley.height, need = lost + item.size;
    if (minHeight[id] > valley.height || !canLoseBelow(item, lost)) {
      leastNeed = std::min(leastNeed, need);
      continue;
    }
    const bool left = item.begin == valley.begin, right = item.end == valley.end;
    const int level = (left && valley.height + need == valley.leftWall) +
                      (right && valley.height + need == valley.rightWall);
    const double score = priority[id] + touchBonus * (left + right + 8 * level);
    if (score > bestScore)
      best = id, bestScore = score;
  }
  steps += 3 * int64_t(firstAt[valley.end] - firstAt[valley.begin]) + 10;
  return best;
}

/// Fills the valley with nothing up to its lower wall. False if too much is lost or if an excluded item would
/// fit into what is lost: then it could as well lie there, which was tried.
bool ConflictSearch::rise(const Valley &valley, int64_t leastNeed) {
  if (valley.lowerWall() == kNoWall)
    return false;
  const int64_t lost = valley.lowerWall() - valley.height;
  steps += 2 * int64_t(valley.end - valley.begin);
  if (leastNeed <= lost ||
      *std::min_element(mayLose.begin() + valley.begin, mayLose.begin() + valley.end) < lost)
    return false;
  for (int32_t time = valley.begin; time < valley.end; ++time) {
    height[time] += lost;
    mayLose[time] -= lost;
  }
  trail.push_back({-1, valley.begin, valley.end, lost});
  return true;
}

void ConflictSearch::undo(size_t mark) {
  for (; trail.size() > mark; trail.pop_back()) {
    const Change &change = trail.back();
    if (change.item >= 0)
      minHeight[change.item] = change.amount;
    else
      for (int32_t time = change.begin; time < change.end; ++time) {
        height[time] -= change.amount;
        mayLose[time] += change.amount;
      }
  }
}

void ConflictSearch::place(int32_t id, int64_t ground) {
  const Item &item = items[id];
  offsets[id] = alignTo(ground, item.align);
  for (int32_t time = item.begin; time < item.end; ++time) {
    height[time] = offsets[id] + item.size;
    mayLose[time] -= offsets[id] - ground;
  }
  steps += 2 * int64_t(item.end - item.begin);
  isPlaced[id] = 1;
  --open;
}

void ConflictSearch::unplace(int32_t id, int64_t ground) {
  const Item &item = items[id];
  for (int32_t time = item.begin; time < item.end; ++time) {
    height[time] = ground;
    mayLose[time] += offsets[id] - ground;
  }
  isPlaced[id] = 0;
  ++open;
}

/// Takes back the last level, which has failed, and those before it that fail with it. False where none is
/// left.
bool ConflictSearch::jumpBack() {
  while (true) {
    const Level failed = levels.back();
    undo(failed.mark);
    levels.pop_back();
    if (levels.empty())
      return false;
    Level &level = levels.back();
    unplace(level.item, level.ground);
    level.reason.join(failed.reason);
    if (movesLeft <= 0 || steps >= endSteps || !failed.reason.meets(items[level.item]))
      continue; // without this item the same fails again
    trail.push_back({level.item, 0, 0, minHeight[level.item]});
    minHeight[level.item] = level.ground + 1;
    return true;
  }
}

/// Places all open items, or takes everything back.
bool ConflictSearch::search() {
  levels.assign(1, {trail.size()});
  while (open > 0) {
    const Valley valley = lowestValley();
    int64_t leastNeed = 0;
    const int32_t id = choose(valley, leastNeed);
    if (id < 0 && rise(valley, leastNeed))
      continue;
    if (id >= 0 && movesLeft-- > 0 && steps < endSteps) {
      levels.back().item = id, levels.back().ground = valley.height;
      place(id, valley.height);
      levels.push_back({trail.size()});
      continue;
    }
    if (id < 0)
      levels.back().reason.join({valley.begin - 1, valley.end + 1}); // the walls are a part of it
    if (!jumpBack())
      return false;
  }
  return true;
}

bool ConflictSearch::run() {
  return std::all_of(mayLose.begin(), mayLose.end(), [](int64_t may) { return may >= 0; }) && search();
}

std::optional<std::vector<int64_t>> packWithBackjumps(const std::vector<Item> &items, int64_t floor,
                                                      int64_t top, uint32_t seed, int64_t endSteps,
                                                      int64_t &steps) {
  ConflictSearch search(items, floor, top, seed, endSteps, steps);
  if (!search.run())
    return std::nullopt;
  return std::move(search.offsets);
}

} // namespace ds::analysis::detail
