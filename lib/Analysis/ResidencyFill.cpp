//===- ResidencyFill.cpp - Fills the slack that prices leave ----------------------===//
//
// Prices move all that is alike at once: where half of it would fit, all of it was given up. What is left
// free goes to the parts whose other choices save most seconds for a byte, one by one.
//
//===---------------------------------------------------------------------------===//
#include "ResidencySolver.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

namespace {

/// Pairs of moves are tried where there are no more.
constexpr size_t kMostPaired = 400;
constexpr int kMostPasses = 6;

/// Another choice of one part.
struct Move {
  uint32_t part = 0;
  Ways ways;
  std::vector<double> gains; ///< seconds of each resource that it saves, for a byte that it takes
};

class SlackFiller {
public:
  SlackFiller(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways)
      : problem(problem), parts(parts), ways(ways), load(loadOf(problem, ways)) {}
  void run();

private:
  using Score = std::pair<double, double>;

  Score scoreOf() const;
  bool fits(const ResidencyPart &part, const Ways &before) const;
  void apply(uint32_t part, const Ways &next);
  Ways waysOf(const ResidencyPart &part) const;
  bool isValid(const ResidencyPart &part, const Ways &local) const;
  std::set<Ways> choicesOf(const ResidencyPart &part) const;
  std::pair<std::vector<double>, double> sumsOf(const ResidencyPart &part, const Ways &local) const;
  std::vector<Move> findMoves();
  bool makeMoves(const std::vector<Move> &moves);
  bool tryMoves(const std::vector<const Move *> &moves);

  const ResidencyProblem &problem;
  const ResidencyParts &parts;
  Ways &ways;
  ResidencyLoad load;
};

SlackFiller::Score SlackFiller::scoreOf() const {
  return {*std::max_element(load.work.begin(), load.work.end()),
          std::accumulate(load.work.begin(), load.work.end(), 0.0)};
}

Ways SlackFiller::waysOf(const ResidencyPart &part) const {
  Ways local;
  for (uint32_t value : part.values)
    local.push_back(ways[value]);
  return local;
}

/// Gives `part` the ways `next`.
void SlackFiller::apply(uint32_t part, const Ways &next) {
  const std::vector<uint32_t> &values = parts.parts[part].values;
  for (size_t local = 0; local < values.size(); ++local) {
    const ResidencyValue &value = problem.values[values[local]];
    if (ways[values[local]] == next[local])
      continue;
    if (const ResidencyWay *way = wayOf(value, ways[values[local]]))
      load.add(*way, -1);
    if (const ResidencyWay *way = wayOf(value, next[local]))
      load.add(*way, +1);
    ways[values[local]] = next[local];
  }
}

/// Whether what `part` holds now, or held `before`, is within the budgets where it may have become more.
bool SlackFiller::fits(const ResidencyPart &part, const Ways &before) const {
  for (size_t local = 0; local < part.values.size(); ++local) {
    uint32_t value = part.values[local];
    if (ways[value] == before[local])
      continue;
    const ResidencyWay *way = wayOf(problem.values[value], ways[value]);
    for (size_t hold = 0; way && hold < way->holds.size(); ++hold) {
      const ResidencyHold &entry = way->holds[hold];
      for (uint32_t moment = entry.begin; moment < entry.end; ++moment)
        if (load.bytes[entry.space][moment] > problem.spaces[entry.space].budget)
          return false;
    }
  }
  return true;
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
    if (at(value) != kMadeAgain)
      continue;
    if (!entry.again || std::any_of(entry.operands.begin(), entry.operands.end(),
                                    [&](uint32_t operand) { return at(operand) == kNotHad; }))
      return false;
  }
  return true;
}

/// What prices have shown of the part's shape, and what one value's other ways make of what it has.
std::set<Ways> SlackFiller::choicesOf(const ResidencyPart &part) const {
  std::set<Ways> choices = parts.seen[part.shape];
  const Ways now = waysOf(part);
  for (size_t local = 0; local < part.values.size(); ++local)
    for (int32_t way = kMadeAgain; way < int32_t(problem.values[part.values[local]].homes.size()); ++way) {
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
      if (next[resource] < order[resource].size() && (!busiest || load.work[resource] > load.work[*busiest]))
        busiest = resource;
    if (!busiest)
      return changed;
    changed |= tryMoves({order[*busiest][next[*busiest]++]});
  }
}

/// Makes all of `moves` if that fits and is better.
bool SlackFiller::tryMoves(const std::vector<const Move *> &moves) {
  Score before = scoreOf();
  std::vector<Ways> old;
  for (const Move *move : moves) {
    old.push_back(waysOf(parts.parts[move->part]));
    apply(move->part, move->ways);
  }
  bool isBetter = scoreOf() < Score{before.first, before.second * (1 - 1e-12)};
  for (size_t move = 0; isBetter && move < moves.size(); ++move)
    isBetter = fits(parts.parts[moves[move]->part], old[move]);
  for (size_t move = moves.size(); !isBetter && move-- > 0;)
    apply(moves[move]->part, old[move]);
  return isBetter;
}

void SlackFiller::run() {
  bool changed = true;
  for (int pass = 0; changed && pass < kMostPasses; ++pass) {
    std::vector<Move> moves = findMoves();
    changed = makeMoves(moves);
    for (size_t one = 0; !changed && moves.size() <= kMostPaired && one < moves.size(); ++one)
      for (size_t other = one + 1; !changed && other < moves.size(); ++other)
        if (moves[one].part != moves[other].part)
          changed = tryMoves({&moves[one], &moves[other]});
  }
}

} // namespace

void fillSlack(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways) {
  SlackFiller(problem, parts, ways).run();
  dropUnused(problem, ways);
}

} // namespace ds::analysis::detail
