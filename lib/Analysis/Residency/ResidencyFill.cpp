//===- ResidencyFill.cpp - Fills the slack that prices leave ----------------------===//
//
// Prices move all that is alike at once: where half of it would fit, all of it was given up. What is left
// free goes to the parts whose other choices save most seconds for a byte, one by one.
//
//===---------------------------------------------------------------------------===//
#include "HeldBytes.h"
#include "ResidencySolver.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

namespace {

/// Pairs of moves, and three together, are tried where there are no more.
constexpr size_t kMostPaired = 400, kMostTripled = 40;
constexpr int kMostPasses = 6;
/// Values of a part are changed one by one where it has no more: each change is a copy of all its ways. A
/// layer has some dozens.
constexpr size_t kMostValues = 512;

/// Another choice of one part.
struct Move {
  uint32_t part = 0;
  Ways ways;
  std::vector<double> gains; ///< seconds of each resource that it saves, for a byte that it takes
};

class SlackFiller {
public:
  SlackFiller(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways);
  void run();

private:
  using Score = std::pair<double, double>;

  Score scoreOf() const;
  template <class Visit>
  void visitChanges(uint32_t part, const Ways &next, Visit visit) const;
  void changeSeconds(const Move &move);
  void changeBytes(const Move &move, int64_t sign);
  bool fits(const Move &move) const;
  Ways waysOf(const ResidencyPart &part) const;
  bool isValid(const ResidencyPart &part, const Ways &local) const;
  std::set<Ways> choicesOf(const ResidencyPart &part) const;
  std::pair<std::vector<double>, double> sumsOf(const ResidencyPart &part, const Ways &local) const;
  std::vector<Move> findMoves();
  bool makeMoves(const std::vector<Move> &moves);
  bool tryMoves(const std::vector<const Move *> &moves);
  bool tryTogether(const std::vector<Move> &moves, size_t from, size_t count,
                   std::vector<const Move *> &taken);

  const ResidencyProblem &problem;
  const ResidencyParts &parts;
  Ways &ways;
  std::vector<double> work;    ///< of each resource
  std::vector<HeldBytes> held; ///< of each space
};

SlackFiller::SlackFiller(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways)
    : problem(problem), parts(parts), ways(ways) {
  ResidencyLoad load = loadOf(problem, ways);
  work = std::move(load.work);
  for (const std::vector<int64_t> &bytes : load.bytes)
    held.emplace_back(bytes);
}

SlackFiller::Score SlackFiller::scoreOf() const {
  return {*std::max_element(work.begin(), work.end()), std::accumulate(work.begin(), work.end(), 0.0)};
}

Ways SlackFiller::waysOf(const ResidencyPart &part) const {
  Ways local;
  for (uint32_t value : part.values)
    local.push_back(ways[value]);
  return local;
}

/// Calls `visit` with the way that each value of `part` has and the one that it has in `next`, where they
/// differ; null where the value is not had.
template <class Visit>
void SlackFiller::visitChanges(uint32_t part, const Ways &next, Visit visit) const {
  const std::vector<uint32_t> &values = parts.parts[part].values;
  for (size_t local = 0; local < values.size(); ++local)
    if (ways[values[local]] != next[local])
      visit(wayOf(problem.values[values[local]], ways[values[local]]),
            wayOf(problem.values[values[local]], next[local]));
}

void SlackFiller::changeSeconds(const Move &move) {
  auto add = [&](const ResidencyWay *way, double sign) {
    for (size_t charge = 0; way && charge < way->charges.size(); ++charge)
      work[way->charges[charge].resource] += sign * way->charges[charge].seconds;
  };
  visitChanges(move.part, move.ways,
               [&](const ResidencyWay *now, const ResidencyWay *next) { add(now, -1), add(next, +1); });
}

/// Makes `held` what it is with the move, or with -1 what it was without.
void SlackFiller::changeBytes(const Move &move, int64_t sign) {
  auto add = [&](const ResidencyWay *way, int64_t times) {
    for (size_t hold = 0; way && hold < way->holds.size(); ++hold)
      held[way->holds[hold].space].add(way->holds[hold].begin, way->holds[hold].end,
                                       times * way->holds[hold].bytes);
  };
  visitChanges(move.part, move.ways,
               [&](const ResidencyWay *now, const ResidencyWay *next) { add(now, -sign), add(next, sign); });
}

/// Whether all is within the budgets where `move`, whose bytes are counted, may have made it more.
bool SlackFiller::fits(const Move &move) const {
  bool fits = true;
  visitChanges(move.part, move.ways, [&](const ResidencyWay *, const ResidencyWay *next) {
    for (size_t hold = 0; next && fits && hold < next->holds.size(); ++hold) {
      const ResidencyHold &entry = next->holds[hold];
      fits = held[entry.space].mostIn(entry.begin, entry.end) <= problem.spaces[entry.space].budget;
    }
  });
  return fits;
}

/// Whether every value that is needed is had, in a way that it has.
bool SlackFiller::isValid(const ResidencyPart &part, const Ways &local) const {
  auto at = [&](uint32_t value) {
    return local[std::lower_bound(part.values.begin(), part.values.end(), value) - part.values.begin()];
  };
  for (uint32_t value : part.values) {
    const ResidencyValue &entry = problem.values[value];
    if (entry.isRead && at(value) == kNotHad)
      return false;
    if (at(value) != kRecomputed)
      continue;
    const std::vector<uint32_t> links = linksOf(problem, value);
    if (!entry.recompute ||
        std::any_of(links.begin(), links.end(), [&](uint32_t operand) { return at(operand) == kNotHad; }))
      return false;
  }
  return true;
}

/// What prices have shown of the part's shape, and what one value's other ways make of what it has.
std::set<Ways> SlackFiller::choicesOf(const ResidencyPart &part) const {
  std::set<Ways> choices = parts.seen[part.shape];
  const Ways now = waysOf(part);
  for (size_t local = 0; part.values.size() <= kMostValues && local < part.values.size(); ++local)
    for (int32_t way = kRecomputed; way < int32_t(problem.values[part.values[local]].homes.size()); ++way) {
      Ways other = now;
      other[local] = way;
      if (isValid(part, other))
        choices.insert(std::move(other));
    }
  choices.erase(now);
  return choices;
}

/// Seconds of each resource and bytes, over the moments for which they are held, of a part's ways.
std::pair<std::vector<double>, double> SlackFiller::sumsOf(const ResidencyPart &part,
                                                           const Ways &local) const {
  std::vector<double> seconds(problem.resources.size());
  double bytes = 0;
  for (size_t index = 0; index < local.size(); ++index)
    if (const ResidencyWay *way = wayOf(problem.values[part.values[index]], local[index])) {
      for (const ResidencyCharge &charge : way->charges)
        seconds[charge.resource] += charge.seconds;
      for (const ResidencyHold &hold : way->holds)
        bytes += double(hold.bytes) * double(hold.end - hold.begin);
    }
  return {seconds, bytes};
}

std::vector<Move> SlackFiller::findMoves() {
  std::vector<Move> moves;
  for (uint32_t part = 0; part < parts.parts.size(); ++part) {
    const ResidencyPart &entry = parts.parts[part];
    auto [seconds, bytes] = sumsOf(entry, waysOf(entry));
    for (const Ways &choice : choicesOf(entry)) {
      auto [gains, otherBytes] = sumsOf(entry, choice);
      for (size_t resource = 0; resource < gains.size(); ++resource)
        gains[resource] = (seconds[resource] - gains[resource]) / std::max(1.0, otherBytes - bytes);
      moves.push_back({part, choice, std::move(gains)});
    }
  }
  return moves;
}

/// Makes moves, always the next one that saves the busiest resource most; where none is left for it, another.
bool SlackFiller::makeMoves(const std::vector<Move> &moves) {
  const size_t count = problem.resources.size();
  std::vector<std::vector<const Move *>> order(count);
  for (size_t resource = 0; resource < count; ++resource) {
    for (const Move &move : moves)
      if (move.gains[resource] > 0)
        order[resource].push_back(&move);
    std::stable_sort(order[resource].rbegin(), order[resource].rend(),
                     [&](const Move *a, const Move *b) { return a->gains[resource] < b->gains[resource]; });
  }
  std::vector<size_t> next(count);
  bool changed = false;
  while (true) {
    std::optional<size_t> busiest;
    for (size_t resource = 0; resource < count; ++resource)
      if (next[resource] < order[resource].size() && (!busiest || work[resource] > work[*busiest]))
        busiest = resource;
    if (!busiest)
      return changed;
    changed |= tryMoves({order[*busiest][next[*busiest]++]});
  }
}

/// Makes all of `moves`, of parts that differ, if that is better and fits.
bool SlackFiller::tryMoves(const std::vector<const Move *> &moves) {
  const Score before = scoreOf();
  const std::vector<double> workBefore = work;
  for (const Move *move : moves)
    changeSeconds(*move);
  // Most moves end here, before any moment is looked at.
  bool isBetter = scoreOf() < Score{before.first, before.second * (1 - 1e-12)};
  if (isBetter) {
    for (const Move *move : moves)
      changeBytes(*move, +1);
    isBetter = std::all_of(moves.begin(), moves.end(), [&](const Move *move) { return fits(*move); });
    for (const Move *move : moves)
      if (!isBetter)
        changeBytes(*move, -1);
  }
  if (!isBetter) {
    work = workBefore;
    return false;
  }
  for (const Move *move : moves) {
    const std::vector<uint32_t> &values = parts.parts[move->part].values;
    for (size_t local = 0; local < values.size(); ++local)
      ways[values[local]] = move->ways[local];
  }
  return true;
}

/// Makes up to `count` of `moves` together with those in `taken`, the first that are better and fit.
bool SlackFiller::tryTogether(const std::vector<Move> &moves, size_t from, size_t count,
                              std::vector<const Move *> &taken) {
  for (size_t index = from; index < moves.size(); ++index) {
    if (std::any_of(taken.begin(), taken.end(),
                    [&](const Move *of) { return of->part == moves[index].part; }))
      continue;
    taken.push_back(&moves[index]);
    if (tryMoves(taken) || (taken.size() < count && tryTogether(moves, index + 1, count, taken)))
      return true;
    taken.pop_back();
  }
  return false;
}

void SlackFiller::run() {
  bool changed = true;
  for (int pass = 0; changed && pass < kMostPasses; ++pass) {
    std::vector<Move> moves = findMoves();
    changed = makeMoves(moves);
    size_t together = moves.size() <= kMostTripled ? 3 : moves.size() <= kMostPaired ? 2 : 1;
    std::vector<const Move *> taken;
    if (!changed && together > 1)
      changed = tryTogether(moves, 0, together, taken);
  }
}

} // namespace

void fillSlack(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways) {
  SlackFiller(problem, parts, ways).run();
  dropUnused(problem, ways);
}

} // namespace ds::analysis::detail
