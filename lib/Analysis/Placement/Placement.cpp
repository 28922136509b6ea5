//===- Placement.cpp - The cheapest forms of all values ------------------------===//
#include "Repetition.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>
#include <unordered_map>

namespace ds::analysis {
namespace {

constexpr uint32_t bitOf(Form form) { return uint32_t(1) << form; }
constexpr bool isPart(Form form) { return form >= kFirstPart; }
/// The least that a state may be better by, relative to what it is compared with: sums in other orders differ
/// by less.
constexpr double kTie = 1e-12;

/// Parts of a tensor that all ranks together send to turn `from` into `to`, and how many exchanges that is.
/// Forward and backward alike.
struct Exchange {
  double share = 0; ///< of (ranks - 1) / ranks times the bytes
  int count = 0;
};

Exchange exchange(const PlacementProblem &problem, Form from, Form to) {
  const bool isToWhole = to == kWhole || to == kCopy;
  if (from == to || from == kWhole || from == kCopy)
    return {};
  if (from == kAddends)
    return isToWhole ? Exchange{2, 1} : Exchange{1, 1};
  // Parts are gathered, and taken in another way where they are to be others and are not exchanged for these.
  return {problem.exchangesParts && isPart(to) ? 1 / problem.ranks : 1, 1};
}

/// How the gradient of what is read in `form` arrives.
Form gradientOf(Form form) { return form == kCopy ? kAddends : form == kAddends ? kWhole : form; }
/// How the gradient of what is held as `held` is to be.
Form wantedGradient(Form held) { return isPart(held) ? held : kWhole; }

/// The states behind an op, as they are found.
struct NextStates {
  std::vector<State> all;
  std::unordered_map<Frontier, uint32_t, FrontierHash> known; ///< numbers of them
  /// Of exchanges between them, by value, form held, form read and whether the whole is there; negative: not
  /// asked for yet.
  std::vector<double> prices;
};

class Search {
public:
  explicit Search(const PlacementProblem &problem) : problem(problem), repetition(problem) {
    findLastReads();
  }
  PlacementSolution run();

private:
  void findLastReads();
  static uint32_t formsRead(const PlacedOp &op, size_t operand);
  uint32_t formsBehind(uint32_t value, uint32_t index) const;
  void setNextLive(uint32_t index);
  void becomeLive();
  void advance(uint32_t index);
  uint32_t repeat(uint32_t index);
  void tryWay(const PlacedOp &op, uint32_t way, uint32_t from);
  void keep(Frontier frontier, double seconds, Step step);
  double priceOf(size_t k, Live from, Form form);
  double secondsBetween(const Frontier &from, const Frontier &to, double limit);
  void dropDominated(std::vector<State> &found);
  void settle(std::vector<State> found);
  PlacementSolution trace() const;

  const PlacementProblem &problem;
  std::vector<uint32_t> lastRead;  ///< by value: the op that reads it last; none: the op that makes it
  std::vector<uint32_t> live;      ///< values of a frontier, in order
  std::vector<uint32_t> nextLive;  ///< those behind the op at hand
  std::vector<uint32_t> nextForms; ///< in which these may be read, by bit
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>>
      laterForms;             ///< by value: ops, the last first, and the forms from there on
  std::vector<int32_t> place; ///< by value: where in `live`, or -1
  std::vector<State> states;
  NextStates next;
  std::vector<std::vector<Step>> steps; ///< by op
  Repetition repetition;
  bool isExact = true;
};

/// The forms in which op `index` may read each of its operands, and those that serve them.
uint32_t Search::formsRead(const PlacedOp &op, size_t operand) {
  uint32_t forms = 0;
  for (const PlacedWay &way : op.ways)
    forms |= bitOf(way.operands[operand]);
  return forms & (bitOf(kWhole) | bitOf(kCopy)) ? forms | bitOf(kWhole) | bitOf(kCopy) : forms;
}

void Search::findLastReads() {
  lastRead.assign(problem.values.size(), 0);
  laterForms.assign(problem.values.size(), {});
  for (uint32_t index = static_cast<uint32_t>(problem.ops.size()); index-- > 0;)
    for (size_t k = 0; k < problem.ops[index].operands.size(); ++k) {
      auto &later = laterForms[problem.ops[index].operands[k]];
      const uint32_t behind = later.empty() ? 0 : later.back().second;
      later.push_back({index, behind | formsRead(problem.ops[index], k)});
    }
  place.assign(problem.values.size(), -1);
  for (uint32_t index = 0; index < problem.ops.size(); ++index) {
    for (uint32_t value : problem.ops[index].results)
      lastRead[value] = index;
    for (uint32_t value : problem.ops[index].operands)
      lastRead[value] = index;
  }
}

/// Keeps the cheaper of two ways to one frontier.
void Search::keep(Frontier frontier, double seconds, Step step) {
  auto [at, isNew] = next.known.try_emplace(frontier, static_cast<uint32_t>(next.all.size()));
  if (isNew) {
    next.all.push_back({std::move(frontier), seconds, step});
    return;
  }
  State &other = next.all[at->second];
  if (seconds < other.seconds * (1 - kTie)) {
    other.seconds = seconds;
    other.step = step;
  }
}

void Search::tryWay(const PlacedOp &op, uint32_t way, uint32_t from) {
  const PlacedWay &chosen = op.ways[way];
  Frontier frontier = states[from].frontier;
  double seconds = states[from].seconds + chosen.seconds;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const PlacedValue &value = problem.values[op.operands[k]];
    const int32_t at = place[op.operands[k]];
    const Form form = chosen.operands[k];
    Live given{value.held, value.available};
    Live &live = value.isGiven ? given : frontier[at];
    seconds += exchangeSeconds(problem, value, live.held, form, live.made);
    if (seconds == std::numeric_limits<double>::infinity())
      return;
    if (form != live.held)
      live.made |= bitOf(form);
  }
  Frontier behind;
  behind.reserve(nextLive.size());
  for (size_t k = 0; k < nextLive.size(); ++k) {
    const uint32_t value = nextLive[k];
    if (place[value] >= 0) {
      behind.push_back(frontier[place[value]]);
      behind.back().made &= nextForms[k]; // what nobody reads any more makes no difference
      continue;
    }
    const size_t result = std::find(op.results.begin(), op.results.end(), value) - op.results.begin();
    behind.push_back({chosen.results[result], 0});
  }
  keep(std::move(behind), seconds, {from, way});
}

/// Seconds to read in `form`, in which it was not made, what is held as `from` and is number `k` of those
/// that are live behind the op.
double Search::priceOf(size_t k, Live from, Form form) {
  constexpr uint32_t kWholes = bitOf(kWhole) | bitOf(kCopy);
  const size_t isThere = (from.made & kWholes) != 0;
  double &price = next.prices[((k * kMaxForms + from.held) * kMaxForms + form) * 2 + isThere];
  if (price < 0)
    price = exchangeSeconds(problem, problem.values[nextLive[k]], from.held, form, from.made & kWholes);
  return price;
}

/// Seconds to turn frontier `from` into one that can do all that `to` can: each value exchanged into the form
/// in which it is held there, and those that were made of it. Ends early where that is more than `limit`.
double Search::secondsBetween(const Frontier &from, const Frontier &to, double limit) {
  double seconds = 0;
  for (size_t k = 0; k < nextLive.size() && seconds <= limit; ++k) {
    if (from[k] == to[k])
      continue;
    Live live = from[k];
    for (uint32_t wanted = (to[k].made | bitOf(to[k].held)) & ~live.made; wanted; wanted &= wanted - 1) {
      const auto form = static_cast<Form>(std::countr_zero(wanted));
      seconds += priceOf(k, live, form);
      live.made |= bitOf(form);
    }
  }
  return seconds;
}

/// Drops states that a cheaper one can become for what lies between: whatever goes on from them, that goes on
/// from there as cheaply, for no exchange takes longer than two in its place.
void Search::dropDominated(std::vector<State> &found) {
  constexpr size_t kCompared = 8; // with the cheapest ones
  next.prices.assign(nextLive.size() * kMaxForms * kMaxForms * 2, -1);
  std::sort(found.begin(), found.end(), [](const State &a, const State &b) {
    return std::tie(a.seconds, a.step.from, a.step.way) < std::tie(b.seconds, b.step.from, b.step.way);
  });
  size_t kept = 0;
  for (size_t index = 0; index < found.size(); ++index) {
    bool isDominated = false;
    for (size_t other = 0; other < std::min(kept, kCompared) && !isDominated; ++other) {
      const double limit = found[index].seconds - found[other].seconds;
      isDominated = secondsBetween(found[other].frontier, found[index].frontier, limit) <= limit;
    }
    if (!isDominated && kept++ != index)
      found[kept - 1] = std::move(found[index]);
  }
  found.resize(kept);
}

void Search::settle(std::vector<State> found) {
  dropDominated(found);
  if (found.size() > problem.maxStates) {
    isExact = false;
    found.resize(problem.maxStates);
  }
  std::vector<Step> &taken = steps.emplace_back();
  for (const State &state : found)
    taken.push_back(state.step);
  states = std::move(found);
}

/// The values that are still read behind op `index`, in order.
void Search::setNextLive(uint32_t index) {
  nextLive.clear();
  auto add = [&](const std::vector<uint32_t> &values) {
    std::copy_if(values.begin(), values.end(), std::back_inserter(nextLive),
                 [&](uint32_t value) { return lastRead[value] > index; });
  };
  add(live);
  add(problem.ops[index].results);
}

/// The forms in which ops behind `index` may read `value`.
uint32_t Search::formsBehind(uint32_t value, uint32_t index) const {
  const auto &later = laterForms[value];
  const auto end =
      std::partition_point(later.begin(), later.end(), [&](const auto &read) { return read.first > index; });
  return end == later.begin() ? 0 : std::prev(end)->second;
}

void Search::becomeLive() {
  for (uint32_t value : live)
    place[value] = -1;
  live = nextLive;
  for (size_t k = 0; k < live.size(); ++k)
    place[live[k]] = static_cast<int32_t>(k);
}

void Search::advance(uint32_t index) {
  const PlacedOp &op = problem.ops[index];
  setNextLive(index);
  next.all.clear();
  next.known.clear();
  nextForms.clear();
  for (uint32_t value : nextLive)
    nextForms.push_back(formsBehind(value, index));
  for (uint32_t from = 0; from < states.size(); ++from)
    for (uint32_t way = 0; way < op.ways.size(); ++way)
      tryWay(op, way, from);
  settle(std::move(next.all));
  becomeLive();
}

/// Goes through the ops from `index` on as through those before, where they are the same and all stands as it
/// did then. Returns how many that are.
uint32_t Search::repeat(uint32_t index) {
  if (index == 0 || !Repetition::looksAt(states.size(), live.size()))
    return 0;
  auto formsOf = [&](uint32_t value, uint32_t before) { return formsBehind(value, before - 1); };
  const std::optional<Repetition::Stand> before =
      repetition.find({index, live, {}, states}, lastRead, formsOf);
  if (!before)
    return 0;
  const uint32_t length = index - before->at;
  for (uint32_t at = before->at; at < index; ++at)
    steps.push_back(std::vector<Step>(steps[at]));
  for (size_t k = 0; k < states.size(); ++k)
    states[k].seconds += states[k].seconds - before->states[k].seconds;
  nextLive = repetition.liveBehind();
  becomeLive();
  return length;
}

PlacementSolution Search::run() {
  states.assign(1, State());
  for (uint32_t index = 0; index < problem.ops.size(); ++index) {
    while (const uint32_t length = repeat(index))
      index += length;
    if (index == problem.ops.size())
      break;
    advance(index);
    if (states.empty()) {
      PlacementSolution none;
      none.stuckAt = index;
      return none;
    }
  }
  return trace();
}

PlacementSolution Search::trace() const {
  PlacementSolution solution;
  const auto best = std::min_element(states.begin(), states.end(),
                                     [](const State &a, const State &b) { return a.seconds < b.seconds; });
  solution.seconds = best->seconds;
  solution.isExact = isExact;
  solution.ways.resize(problem.ops.size());
  auto number = static_cast<uint32_t>(best - states.begin());
  for (size_t index = problem.ops.size(); index-- > 0;) {
    const Step step = steps[index][number];
    solution.ways[index] = step.way;
    number = step.from;
  }
  solution.held.resize(problem.values.size(), kWhole);
  solution.read.resize(problem.values.size(), 0);
  for (size_t value = 0; value < problem.values.size(); ++value)
    if (problem.values[value].isGiven)
      solution.held[value] = problem.values[value].held;
  for (size_t index = 0; index < problem.ops.size(); ++index) {
    const PlacedOp &op = problem.ops[index];
    const PlacedWay &way = op.ways[solution.ways[index]];
    for (size_t k = 0; k < op.results.size(); ++k)
      solution.held[op.results[k]] = way.results[k];
    for (size_t k = 0; k < op.operands.size(); ++k)
      if (way.operands[k] != solution.held[op.operands[k]])
        solution.read[op.operands[k]] |= bitOf(way.operands[k]);
  }
  return solution;
}

} // namespace

double exchangeSeconds(const PlacementProblem &problem, const PlacedValue &value, Form held, Form form,
                       uint32_t made) {
  if (held == form || (made & bitOf(form)))
    return 0;
  if (isPart(held) && !value.mayMove)
    return std::numeric_limits<double>::infinity();
  const bool isWhole = form == kWhole || form == kCopy;
  const bool isThere = held == kWhole || (made & (bitOf(kWhole) | bitOf(kCopy))); // the whole
  const Exchange forward = isThere ? Exchange{} : exchange(problem, held, form);
  const Exchange backward =
      value.gradientBytes > 0 ? exchange(problem, gradientOf(form), wantedGradient(held)) : Exchange{};
  const double perByte = (problem.ranks - 1) / problem.ranks * problem.secondsPerByte;
  auto seconds = [&](const Exchange &exchange, double bytes) {
    const bool isSum = exchange.share > 1;
    const double weight = isSum ? 1 : problem.partsWeight,
                 waits = isSum ? problem.waitsOfSum : exchange.count;
    return weight * (perByte * exchange.share * bytes + problem.secondsPerExchange * waits);
  };
  const bool isCopied = isThere && !isWhole; // its own part, or zeros on all ranks but one
  const double copied =
      isCopied ? problem.partsWeight * problem.secondsPerCopied * value.bytes / problem.ranks : 0;
  return copied + seconds(forward, value.bytes) + seconds(backward, value.gradientBytes);
}

PlacementSolution placeValues(const PlacementProblem &problem) { return Search(problem).run(); }

} // namespace ds::analysis
