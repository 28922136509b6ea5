//===- ResidencyParts.cpp - The cheapest choice of a part at given prices ---------===//
//
// A part's choice is a closure: a value is had, and perhaps recomputed, which implies that it is had and that
// its operands are. Having it costs its cheapest home; making it again costs the difference. Weights are
// whole picoseconds, rounded down, so that their least sum is a bound. Layers are alike, and so are their
// weights: what was solved for one is looked up for the others.
//
//===---------------------------------------------------------------------------===//
#include "ResidencySolver.h"
#include "ds/Analysis/Cuts/MinClosure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ds::analysis::detail {

static constexpr double kPerSecond = 1e10;
/// The weight of what cannot be had so, beyond that of any way that can; sums of many stay finite.
static constexpr int64_t kForbidden = int64_t(1) << 50, kDearest = int64_t(1) << 48;

const ResidencyWay *wayOf(const ResidencyValue &value, int32_t way) {
  if (way == kNotHad)
    return nullptr;
  return way == kRecomputed ? &*value.recompute : &value.homes[way];
}

std::vector<uint32_t> linksOf(const ResidencyProblem &problem, uint32_t value) {
  std::vector<uint32_t> links;
  for (uint32_t operand : problem.values[value].operands)
    if (!problem.values[operand].isRead)
      links.push_back(operand);
  return links;
}

ResidencyParts::ResidencyParts(const ResidencyProblem &problem) : problem(problem) {
  findParts();
  findShapes();
}

void ResidencyParts::findParts() {
  std::vector<uint32_t> leader(problem.values.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](uint32_t value) {
    while (leader[value] != value)
      value = leader[value] = leader[leader[value]];
    return value;
  };
  for (uint32_t value = 0; value < leader.size(); ++value)
    for (uint32_t operand : linksOf(problem, value)) {
      auto [low, high] = std::minmax({find(value), find(operand)}); // by value: both are temporary
      leader[high] = low;
    }
  std::map<uint32_t, size_t> indices;
  for (uint32_t value = 0; value < leader.size(); ++value) {
    auto [place, isNew] = indices.try_emplace(find(value), parts.size());
    if (isNew)
      parts.emplace_back();
    parts[place->second].values.push_back(value);
  }
}

void ResidencyParts::findShapes() {
  std::map<std::vector<uint32_t>, uint32_t> shapes;
  for (ResidencyPart &part : parts) {
    std::vector<uint32_t> signature;
    for (uint32_t value : part.values) {
      const ResidencyValue &entry = problem.values[value];
      const std::vector<uint32_t> links = linksOf(problem, value);
      signature.insert(signature.end(), {uint32_t(entry.homes.size()), entry.recompute.has_value(),
                                         entry.isRead, uint32_t(links.size())});
      for (uint32_t operand : links)
        signature.push_back(std::lower_bound(part.values.begin(), part.values.end(), operand) -
                            part.values.begin());
    }
    part.shape = shapes.try_emplace(std::move(signature), shapes.size()).first->second;
  }
  known.resize(shapes.size());
  seen.resize(shapes.size());
}

ResidencyPriceSums::ResidencyPriceSums(const ResidencyPrices &prices, size_t numSpaces) : spaces(numSpaces) {
  for (auto [where, price] : prices.bytes) {
    spaces[where.space].moments.push_back(where.moment);
    spaces[where.space].sums.push_back(spaces[where.space].sums.back() + price);
  }
}

double ResidencyPriceSums::of(const ResidencyHold &hold) const {
  const auto &[moments, sums] = spaces[hold.space];
  if (moments.empty() || hold.end <= hold.begin)
    return 0;
  auto begin = std::lower_bound(moments.begin(), moments.end(), hold.begin);
  auto end = std::lower_bound(begin, moments.end(), hold.end);
  return sums[end - moments.begin()] - sums[begin - moments.begin()];
}

size_t ResidencyParts::WeightsHash::operator()(const Weights &weights) const {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a, by words
  for (int64_t weight : weights)
    hash = (hash ^ uint64_t(weight)) * 0x100000001b3, hash ^= hash >> 29;
  return hash;
}

int64_t ResidencyParts::weightOf(const ResidencyWay &way, const ResidencyPrices &prices,
                                 const ResidencyPriceSums &sums) const {
  double seconds = 0;
  for (const ResidencyCharge &charge : way.charges)
    seconds += prices.seconds[charge.resource] * charge.seconds;
  for (const ResidencyHold &hold : way.holds)
    seconds += (sums.of(hold) + prices.everywhere * double(hold.end - hold.begin)) * double(hold.bytes);
  return int64_t(std::min(std::floor(seconds * kPerSecond), double(kDearest)));
}

void ResidencyParts::weigh(const ResidencyPart &part, const ResidencyPrices &prices,
                           const ResidencyPriceSums &sums, Weights &weights) const {
  weights.clear();
  for (uint32_t value : part.values) {
    const ResidencyValue &entry = problem.values[value];
    int64_t least = kForbidden;
    int32_t cheapest = kNotHad;
    for (size_t home = 0; home < entry.homes.size(); ++home)
      if (int64_t weight = weightOf(entry.homes[home], prices, sums); weight < least || cheapest == kNotHad)
        least = weight, cheapest = int32_t(home);
    weights.insert(
        weights.end(),
        {least, entry.recompute ? weightOf(*entry.recompute, prices, sums) : kForbidden, cheapest});
  }
}

ResidencyParts::Choice ResidencyParts::solve(const ResidencyPart &part, const Weights &weights) const {
  // Node 2v: value v is had; node 2v + 1: it is recomputed.
  ClosureProblem closure;
  for (uint32_t local = 0; local < part.values.size(); ++local) {
    const ResidencyValue &entry = problem.values[part.values[local]];
    int64_t home = weights[kWeightsOfValue * local], again = weights[kWeightsOfValue * local + 1];
    // Without a home it is had only by being recomputed, however much more that may weigh with its operands.
    const bool hasHome = !entry.homes.empty();
    closure.nodes.push_back({hasHome ? home : 0, entry.isRead});
    closure.nodes.push_back({hasHome ? again - home : again, false});
    closure.implications.emplace_back(2 * local + 1, 2 * local);
    if (!hasHome)
      closure.implications.emplace_back(2 * local, 2 * local + 1);
    for (uint32_t operand : linksOf(problem, part.values[local]))
      closure.implications.emplace_back(
          2 * local + 1,
          2 * (std::lower_bound(part.values.begin(), part.values.end(), operand) - part.values.begin()));
  }
  std::vector<bool> chosen = findMinimumClosure(closure);
  Choice choice;
  for (uint32_t node = 0; node < chosen.size(); ++node)
    choice.weight += chosen[node] ? closure.nodes[node].weight : 0;
  for (uint32_t local = 0; local < part.values.size(); ++local)
    choice.ways.push_back(!chosen[2 * local]      ? kNotHad
                          : chosen[2 * local + 1] ? kRecomputed
                                                  : int32_t(weights[kWeightsOfValue * local + 2]));
  dropUnusedOf(part, choice.ways);
  return choice;
}

/// As dropUnused: what a part's values are made of is in the part, or had anyway.
void ResidencyParts::dropUnusedOf(const ResidencyPart &part, Ways &ways) const {
  std::vector<bool> isUsed(ways.size());
  for (size_t local = ways.size(); local-- > 0;) {
    const uint32_t value = part.values[local];
    if (!problem.values[value].isRead && !isUsed[local])
      ways[local] = kNotHad;
    if (ways[local] == kRecomputed)
      for (uint32_t operand : linksOf(problem, value))
        isUsed[std::lower_bound(part.values.begin(), part.values.end(), operand) - part.values.begin()] =
            true;
  }
}

Ways ResidencyParts::choose(const ResidencyPrices &prices, double &cost) {
  const ResidencyPriceSums sums(prices, problem.spaces.size());
  Ways ways(problem.values.size(), kNotHad);
  Weights weights;
  for (const ResidencyPart &part : parts) {
    weigh(part, prices, sums, weights);
    auto place = known[part.shape].find(weights);
    if (place == known[part.shape].end()) {
      place = known[part.shape].emplace(weights, solve(part, weights)).first;
      seen[part.shape].insert(place->second.ways);
    }
    const Choice &choice = place->second;
    cost += double(choice.weight) / kPerSecond;
    for (size_t local = 0; local < part.values.size(); ++local)
      ways[part.values[local]] = choice.ways[local];
  }
  return ways;
}

/// Operands come before what is made of them, so one walk from behind sees all readers first.
void dropUnused(const ResidencyProblem &problem, Ways &ways) {
  std::vector<bool> isUsed(ways.size());
  for (size_t value = ways.size(); value-- > 0;) {
    if (!problem.values[value].isRead && !isUsed[value])
      ways[value] = kNotHad;
    if (ways[value] == kRecomputed)
      for (uint32_t operand : problem.values[value].operands)
        isUsed[operand] = true;
  }
}

} // namespace ds::analysis::detail
