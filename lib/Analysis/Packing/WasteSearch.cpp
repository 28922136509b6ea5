//===- WasteSearch.cpp - Packing below a given height, depth first -----------------===//

#include "WasteSearch.h"

#include "Heights.h"
#include "ItemTimes.h"
#include "Random.h"
#include "Valley.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

namespace {

constexpr int64_t kMovesPerItem = 4;
constexpr int32_t kRise = -1; ///< the move that fills a valley with nothing

class WasteSearch {
public:
  WasteSearch(const std::vector<Item> &items, int64_t floor, int64_t top, uint32_t seed, int64_t endSteps,
              int64_t &steps);
  bool run();
  std::vector<int64_t> offsets;

private:
  using Moves = std::vector<int32_t>;

  void sortItems(uint32_t seed);
  void findMoves(const Valley &valley, size_t enough, Moves &moves);
  bool isTwinOfOpen(int32_t position) const;
  bool chooseValley(Valley &chosen, Moves &moves);
  bool search();
  bool tryItem(const Valley &valley, int32_t id);
  bool tryRise(const Valley &valley);

  std::vector<Item> items; ///< their times are indices of `heights`
  int64_t movesLeft;
  int64_t endSteps;
  int64_t &steps;
  std::vector<int32_t> order;   ///< items by begin, then as they are tried
  std::vector<int32_t> firstAt; ///< of `order`, by begin
  Heights heights;
  std::vector<uint8_t> isPlaced; ///< by item
  size_t open;                   ///< items that are not placed
};

} // namespace

WasteSearch::WasteSearch(const std::vector<Item> &given, int64_t floor, int64_t top, uint32_t seed,
                         int64_t endSteps, int64_t &steps)
    : offsets(given.size()), items(given), movesLeft(kMovesPerItem * int64_t(given.size())),
      endSteps(endSteps), steps(steps), isPlaced(given.size()), open(given.size()) {
  const size_t count = rankTimes(items);
  heights = Heights(items, count, floor, top);
  sortItems(seed);
}

void WasteSearch::sortItems(uint32_t seed) {
  std::vector<int64_t> length(items.size());
  Random random(seed);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto noise = int64_t(random.next() >> 54); // 10 bits
    length[i] = (items[i].end - items[i].begin) * (1024 + (seed == 0 ? 0 : noise));
  }
  order.resize(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple(items[a].begin, -length[a], -items[a].size, a) <
           std::tuple(items[b].begin, -length[b], -items[b].size, b);
  });
  firstAt = startsByBegin(items, heights.height.size());
}

/// Whether the item before is the same and was not taken either: then neither is this one.
bool WasteSearch::isTwinOfOpen(int32_t position) const {
  const Item &item = items[order[position]];
  if (position == firstAt[item.begin] || isPlaced[order[position - 1]])
    return false;
  const Item &before = items[order[position - 1]];
  return std::tuple(before.end, before.size, before.align) == std::tuple(item.end, item.size, item.align);
}

/// What may lie leftmost on the valley's ground, until there are more than `enough`. What is left free before
/// it is lost up to its top or the wall's.
void WasteSearch::findMoves(const Valley &valley, size_t enough, Moves &moves) {
  moves.clear();
  int64_t may = kNoWall; // be lost in all of [valley.begin, begin)
  for (int32_t begin = valley.begin; begin < valley.end && may > 0; ++begin) {
    for (int32_t position = firstAt[begin]; position < firstAt[begin + 1]; ++position) {
      const int32_t id = order[position];
      ++steps;
      if (isPlaced[id] || items[id].end > valley.end || isTwinOfOpen(position))
        continue;
      if (std::min(valley.leftWall, valley.height + items[id].size) - valley.height > may)
        continue;
      moves.push_back(id);
      if (moves.size() > enough)
        return;
    }
    may = std::min(may, heights.mayLose[begin]);
  }
  if (valley.lowerWall() != kNoWall && valley.lowerWall() - valley.height <= may)
    moves.push_back(kRise);
}

/// The valley with the fewest moves, the lowest of equals. False if one has none.
bool WasteSearch::chooseValley(Valley &chosen, Moves &moves) {
  Moves here;
  size_t fewest = std::numeric_limits<size_t>::max() - 1;
  const auto count = int32_t(heights.height.size());
  steps += int64_t(count);
  for (int32_t begin = 0; begin < count && fewest > 1;) {
    const Valley valley = valleyAt(heights.height, begin);
    begin = valley.end;
    if (valley.lowerWall() < valley.height)
      continue;
    findMoves(valley, fewest, here);
    if (here.empty())
      return false;
    if (here.size() < fewest || (here.size() == fewest && valley.height < chosen.height)) {
      moves.swap(here);
      chosen = valley;
      fewest = moves.size();
    }
  }
  return true;
}

bool WasteSearch::tryRise(const Valley &valley) {
  const int64_t lost = valley.lowerWall() - valley.height;
  heights.fill(valley.begin, valley.end, valley.lowerWall(), lost);
  if (search())
    return true;
  heights.fill(valley.begin, valley.end, valley.height, -lost);
  return false;
}

bool WasteSearch::tryItem(const Valley &valley, int32_t id) {
  const Item &item = items[id];
  const int64_t at = alignTo(valley.height, item.align), top = at + item.size;
  const int64_t lost = at - valley.height, gap = std::min(valley.leftWall, top);
  if (!heights.canLose(item.begin, item.end, lost))
    return false;
  heights.fill(valley.begin, item.begin, gap, gap - valley.height);
  heights.fill(item.begin, item.end, top, lost);
  offsets[id] = at;
  isPlaced[id] = 1;
  --open;
  if (search())
    return true;
  ++open;
  isPlaced[id] = 0;
  heights.fill(item.begin, item.end, valley.height, -lost);
  heights.fill(valley.begin, item.begin, valley.height, valley.height - gap);
  return false;
}

bool WasteSearch::search() {
  if (open == 0)
    return true;
  Valley valley;
  Moves moves;
  if (!chooseValley(valley, moves))
    return false;
  for (int32_t move : moves) {
    if (movesLeft-- <= 0 || steps >= endSteps)
      return false;
    if (move == kRise ? tryRise(valley) : tryItem(valley, move))
      return true;
  }
  return false;
}

bool WasteSearch::run() { return heights.canHold() && search(); }

std::optional<std::vector<int64_t>> packBelow(const std::vector<Item> &items, int64_t floor, int64_t top,
                                              uint32_t seed, int64_t endSteps, int64_t &steps) {
  WasteSearch search(items, floor, top, seed, endSteps, steps);
  if (!search.run())
    return std::nullopt;
  return std::move(search.offsets);
}

} // namespace ds::analysis::detail
