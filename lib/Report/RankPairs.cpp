//===- RankPairs.cpp - Which ranks of two plans are compared --------------------===//
//
// Stages are paired by number, or all with the only one of the other plan. Within a pair of stages a row
// that is alone stands for every rank; rows among rows are paired by coordinates: the grid of the larger size
// along each axis is walked, and each of its points is a rank of either plan, where an axis of size 1 stands
// for all coordinates and a longer one ends at its size.
//
//===---------------------------------------------------------------------------===//

#include "ds/Report/RankPairs.h"

#include <algorithm>
#include <array>
#include <map>

namespace ds::report {

void joinSpans(std::vector<Span> &spans) {
  std::sort(spans.begin(), spans.end(), [](Span a, Span b) { return a.first < b.first; });
  std::vector<Span> joined;
  for (Span span : spans)
    if (!joined.empty() && span.first <= uint64_t(joined.back().last) + 1)
      joined.back().last = std::max(joined.back().last, span.last);
    else
      joined.push_back(span);
  spans = std::move(joined);
}

std::string spellSpans(const std::string &noun, const std::vector<Span> &spans) {
  constexpr size_t kMostSpelt = 8;
  std::string text = noun;
  if (spans.size() > 1 || spans.front().first != spans.front().last)
    text += "s";
  uint64_t left = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    auto [first, last] = spans[i];
    if (i >= kMostSpelt) {
      left += uint64_t(last) - first + 1;
      continue;
    }
    text += (i > 0 ? ", " : " ") + std::to_string(first);
    if (first != last)
      text += " to " + std::to_string(last);
  }
  return left > 0 ? text + " and " + std::to_string(left) + " more" : text;
}

namespace {

/// The sizes of the axes along which the ranks of a stage differ, the last one fastest.
using Axes = std::array<uint64_t, 3>;

/// The rows of one pipeline stage. A rank's position is its number among the stage's ranks.
struct Stage {
  uint32_t number = 0;
  std::vector<const RankPlan *> rows;
  std::optional<Axes> axes; ///< none where the mesh has another number of ranks: a file may say anything

  uint64_t numRanks() const {
    uint64_t ranks = 0;
    for (const RankPlan *row : rows)
      ranks += uint64_t(row->lastRank) - row->firstRank + 1;
    return ranks;
  }
};

/// Where a rank stands: its row's number among the stage's, and its own.
struct Seat {
  size_t row = 0;
  uint32_t rank = 0;
};

/// Pairs of rows of two stages, as they are found. A missing row has no partner.
class PairList {
public:
  PairList(const Stage &before, const Stage &after) : before(before), after(after) {}

  static constexpr size_t kNone = SIZE_MAX;
  void add(size_t beforeRow, Span beforeRanks, size_t afterRow, Span afterRanks) {
    RankPair &pair = pairs[{afterRow, beforeRow}];
    if (beforeRow != kNone)
      pair.before = before.rows[beforeRow], pair.beforeRanks.push_back(beforeRanks);
    if (afterRow != kNone)
      pair.after = after.rows[afterRow], pair.afterRanks.push_back(afterRanks);
  }
  void moveTo(std::vector<RankPair> &list) {
    for (auto &[rows, pair] : pairs) {
      joinSpans(pair.beforeRanks), joinSpans(pair.afterRanks);
      list.push_back(std::move(pair));
    }
  }

private:
  const Stage &before, &after;
  std::map<std::pair<size_t, size_t>, RankPair> pairs; ///< by the rows of `after`, then of `before`
};

/// Walks the ranks of a stage by position.
struct Cursor {
  const Stage &stage;
  size_t row = 0;
  uint64_t taken = 0; ///< of the row

  bool isAtEnd() const { return row == stage.rows.size(); }
  uint64_t numLeft() const {
    return uint64_t(stage.rows[row]->lastRank) - stage.rows[row]->firstRank + 1 - taken;
  }
  Span next(uint64_t ranks) const {
    uint32_t first = uint32_t(stage.rows[row]->firstRank + taken);
    return {first, uint32_t(first + ranks - 1)};
  }
  void advance(uint64_t ranks) {
    taken += ranks;
    if (numLeft() == 0)
      ++row, taken = 0;
  }
};

} // namespace

/// The axes of a stage of `numRanks` ranks.
static std::optional<Axes> axesOf(const Mesh &mesh, uint64_t numRanks) {
  const Axes axes = {mesh.dp, mesh.sp, mesh.tp};
  uint64_t ranks = 1;
  for (uint64_t size : axes) {
    if (size == 0 || size > numRanks / ranks)
      return std::nullopt;
    ranks *= size;
  }
  return ranks == numRanks ? std::optional(axes) : std::nullopt;
}

/// In the order of their numbers.
static std::vector<Stage> stagesOf(const PlanReport &report) {
  std::map<uint32_t, Stage> stages;
  for (const RankPlan &row : report.ranks) {
    Stage &stage = stages[row.stage];
    stage.number = row.stage;
    stage.rows.push_back(&row);
  }
  std::vector<Stage> list;
  for (auto &[number, stage] : stages) {
    stage.axes = axesOf(report.mesh, stage.numRanks());
    list.push_back(std::move(stage));
  }
  return list;
}

/// Where the ranks of `stage` stand, by position.
static std::vector<Seat> seatsOf(const Stage &stage) {
  std::vector<Seat> seats;
  for (size_t row = 0; row < stage.rows.size(); ++row)
    for (uint64_t rank = stage.rows[row]->firstRank; rank <= stage.rows[row]->lastRank; ++rank)
      seats.push_back({row, uint32_t(rank)});
  return seats;
}

/// The position at `point` of a grid that is as long as the longer plan along each axis.
static std::optional<uint64_t> positionAt(const Axes &point, const Axes &axes) {
  uint64_t position = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] > 1 && point[i] >= axes[i])
      return std::nullopt;
    position = position * axes[i] + (axes[i] > 1 ? point[i] : 0);
  }
  return position;
}

/// Pairs ranks of equal coordinates. False where there is no telling: a mesh contradicts its rows, or there
/// are more ranks than are worth a walk (no plan of so many has more than a row or two).
static bool pairByCoordinates(const Stage &before, const Stage &after, PairList &pairs) {
  constexpr uint64_t kMostPoints = 1 << 16;
  if (!before.axes || !after.axes)
    return false;
  Axes sizes;
  uint64_t points = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = std::max((*before.axes)[i], (*after.axes)[i]);
    if (sizes[i] > kMostPoints / points)
      return false;
    points *= sizes[i];
  }
  const std::vector<Seat> old = seatsOf(before), now = seatsOf(after);
  for (uint64_t number = 0; number < points; ++number) {
    const Axes point = {number / sizes[2] / sizes[1], number / sizes[2] % sizes[1], number % sizes[2]};
    std::optional<uint64_t> left = positionAt(point, *before.axes), right = positionAt(point, *after.axes);
    Seat from = left ? old[*left] : Seat{PairList::kNone, 0},
         to = right ? now[*right] : Seat{PairList::kNone, 0};
    if (left || right)
      pairs.add(from.row, {from.rank, from.rank}, to.row, {to.rank, to.rank});
  }
  return true;
}

/// Pairs ranks of equal positions; those of the longer stage that are left have no partner.
static void pairByPosition(const Stage &before, const Stage &after, PairList &pairs) {
  Cursor old{before}, now{after};
  while (!old.isAtEnd() && !now.isAtEnd()) {
    uint64_t ranks = std::min(old.numLeft(), now.numLeft());
    pairs.add(old.row, old.next(ranks), now.row, now.next(ranks));
    old.advance(ranks), now.advance(ranks);
  }
  for (; !old.isAtEnd(); old.advance(old.numLeft()))
    pairs.add(old.row, old.next(old.numLeft()), PairList::kNone, {});
  for (; !now.isAtEnd(); now.advance(now.numLeft()))
    pairs.add(PairList::kNone, {}, now.row, now.next(now.numLeft()));
}

/// Pairs the ranks of two stages, of which one may have none.
static void pairStages(const Stage &before, const Stage &after, std::vector<RankPair> &list) {
  PairList pairs(before, after);
  bool isAlone = before.rows.size() == 1 || after.rows.size() == 1;
  if (before.rows.empty() || after.rows.empty()) {
    pairByPosition(before, after, pairs);
  } else if (isAlone) {
    for (size_t old = 0; old < before.rows.size(); ++old)
      for (size_t now = 0; now < after.rows.size(); ++now)
        pairs.add(old, {before.rows[old]->firstRank, before.rows[old]->lastRank}, now,
                  {after.rows[now]->firstRank, after.rows[now]->lastRank});
  } else if (!pairByCoordinates(before, after, pairs)) {
    pairByPosition(before, after, pairs);
  }
  pairs.moveTo(list);
}

std::vector<RankPair> pairRanks(const PlanReport &before, const PlanReport &after) {
  const std::vector<Stage> old = stagesOf(before), now = stagesOf(after);
  std::vector<RankPair> list;
  const Stage none;
  if (std::min(old.size(), now.size()) == 1) { // the only stage has the layers of all
    for (const Stage &left : old)
      for (const Stage &right : now)
        pairStages(left, right, list);
    return list;
  }
  auto left = old.begin(), right = now.begin();
  while (left != old.end() || right != now.end()) {
    bool hasLeft = left != old.end() && (right == now.end() || left->number <= right->number);
    bool hasRight = right != now.end() && (left == old.end() || right->number <= left->number);
    pairStages(hasLeft ? *left : none, hasRight ? *right : none, list);
    if (hasLeft)
      ++left;
    if (hasRight)
      ++right;
  }
  return list;
}

} // namespace ds::report
