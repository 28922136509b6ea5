//===- ConflictSearch.cpp - Packing below a given height, with backjumping ---------===//

#include "ConflictSearch.h"

#include "Heights.h"
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

/// Which items are tried first.
struct Preference {
  /// `priority` is by item, its ops; the items' times are ranks.
  Preference(const std::vector<Item> &items, std::vector<double> priority, size_t times, uint32_t seed);

  std::vector<double> priority; ///< by item; the highest is tried first
  double touchBonus = 0;      ///< for each wall of the valley that an item touches, and more for a level top
  std::vector<int32_t> order; ///< items by begin
  std::vector<int32_t> firstAt; ///< of `order`, by begin
};

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

  Valley lowestValley();
  int32_t choose(const Valley &valley, int64_t &leastNeed);
  bool rise(const Valley &valley, int64_t leastNeed);
  void place(int32_t id, int64_t ground);
  void unplace(int32_t id, int64_t ground);
  bool search();
  bool jumpBack();
  void undo(size_t mark);

  std::vector<Item> items; ///< their times are indices of `heights`
  int64_t movesLeft;
  int64_t endSteps;
  int64_t &steps;
  std::optional<Preference> preference; ///< there once items have ranks
  Heights heights;
  std::vector<int64_t> minHeight; ///< bytes, by item
  std::vector<uint8_t> isPlaced;  ///< by item
  size_t open;                    ///< items that are not placed
  std::vector<Change> trail;
  std::vector<Level> levels;
};

} // namespace

ConflictSearch::ConflictSearch(const std::vector<Item> &given, int64_t floor, int64_t top, uint32_t seed,
                               int64_t endSteps, int64_t &steps)
    : offsets(given.size()), items(given), movesLeft(kMovesPerItem * int64_t(given.size())),
      endSteps(endSteps), steps(steps), minHeight(given.size()), isPlaced(given.size()), open(given.size()) {
  std::vector<double> lengths; // ops, before they become ranks
  for (const Item &item : items)
    lengths.push_back(item.end - item.begin);
  const size_t count = rankTimes(items);
  heights = Heights(items, count, floor, top);
  for (const Item &item : items)
    steps += item.end - item.begin + 40;
  preference.emplace(items, std::move(lengths), count, seed);
}

/// Every second order prefers what touches walls; among equals it is lifetime, area, or between the two.
Preference::Preference(const std::vector<Item> &items, std::vector<double> lengths, size_t times,
                       uint32_t seed)
    : priority(std::move(lengths)), order(items.size()), firstAt(startsByBegin(items, times)) {
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
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(items[a].begin, -priority[a], a) < std::tuple(items[b].begin, -priority[b], b);
  });
}

Valley ConflictSearch::lowestValley() {
  const std::vector<int64_t> &height = heights.height;
  steps += int64_t(height.size()) / 4;
  return valleyAt(height, int32_t(std::min_element(height.begin(), height.end()) - height.begin()));
}

/// The item to place on the valley's ground, or -1 if none can; `leastNeed` becomes the least height of an
/// item that fits between the walls and is not to lie here.
int32_t ConflictSearch::choose(const Valley &valley, int64_t &leastNeed) {
  int32_t best = -1;
  double bestScore = -1;
  leastNeed = kNoWall;
  const int32_t from = preference->firstAt[valley.begin], to = preference->firstAt[valley.end];
  for (int32_t at = from; at < to; ++at) {
    const int32_t id = preference->order[at];
    const Item &item = items[id];
    if (isPlaced[id] || item.end > valley.end)
      continue;
    const int64_t lost = alignTo(valley.height, item.align) - valley.height, need = lost + item.size;
    if (minHeight[id] > valley.height || !heights.canLose(item.begin, item.end, lost)) {
      leastNeed = std::min(leastNeed, need);
      continue;
    }
    const bool left = item.begin == valley.begin, right = item.end == valley.end;
    const int level = (left && valley.height + need == valley.leftWall) +
                      (right && valley.height + need == valley.rightWall);
    const double score = preference->priority[id] + preference->touchBonus * (left + right + 8 * level);
    if (score > bestScore)
      best = id, bestScore = score;
  }
  steps += 3 * int64_t(to - from) + 10;
  return best;
}

/// Fills the valley with nothing up to its lower wall. False if too much is lost or if an excluded item would
/// fit into what is lost: then it could as well lie there, which was tried.
bool ConflictSearch::rise(const Valley &valley, int64_t leastNeed) {
  if (valley.lowerWall() == kNoWall)
    return false;
  const int64_t lost = valley.lowerWall() - valley.height;
  steps += 2 * int64_t(valley.end - valley.begin);
  if (leastNeed <= lost || !heights.canLose(valley.begin, valley.end, lost))
    return false;
  heights.fill(valley.begin, valley.end, valley.lowerWall(), lost);
  trail.push_back({-1, valley.begin, valley.end, lost});
  return true;
}

void ConflictSearch::undo(size_t mark) {
  for (; trail.size() > mark; trail.pop_back()) {
    const Change &change = trail.back();
    if (change.item >= 0)
      minHeight[change.item] = change.amount;
    else
      heights.fill(change.begin, change.end, heights.height[change.begin] - change.amount, -change.amount);
  }
}

void ConflictSearch::place(int32_t id, int64_t ground) {
  const Item &item = items[id];
  offsets[id] = alignTo(ground, item.align);
  heights.fill(item.begin, item.end, offsets[id] + item.size, offsets[id] - ground);
  steps += 2 * int64_t(item.end - item.begin);
  isPlaced[id] = 1;
  --open;
}

void ConflictSearch::unplace(int32_t id, int64_t ground) {
  const Item &item = items[id];
  heights.fill(item.begin, item.end, ground, ground - offsets[id]);
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

bool ConflictSearch::run() { return heights.canHold() && search(); }

std::optional<std::vector<int64_t>> packWithBackjumps(const std::vector<Item> &items, int64_t floor,
                                                      int64_t top, uint32_t seed, int64_t endSteps,
                                                      int64_t &steps) {
  ConflictSearch search(items, floor, top, seed, endSteps, steps);
  if (!search.run())
    return std::nullopt;
  return std::move(search.offsets);
}

} // namespace ds::analysis::detail
