//===- ResidencyParts.cpp - The cheapest choice of a part at given prices ---------===//
//
// A part's choice is a closure: a value is had, and perhaps made again, which implies that it is had and that
// its operands are. Having it costs its cheapest home; making it again costs the difference. Weights are
// whole picoseconds, rounded down, so that their least sum is a bound. Layers are alike, and so are their
// weights: what was solved for one is looked up for the others.
//
//===---------------------------------------------------------------------------===//
#include "ResidencySolver.h"
#include "ds/Analysis/MinClosure.h"

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
  return way == kMadeAgain ? &*value.again : &value.homes[way];
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
      auto [low, high] = std::minmax(find(value), find(operand));
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
      signature.insert(signature.end(), {uint32_t(entry.homes.size()), entry.again.has_value(), entry.isRead,
                                         uint32_t(links.size())});
      for (uint32_t operand : links)
        signature.push_back(std::lower_bound(part.values.begin(), part.values.end(), operand) -
                            part.values.begin());
    }
    part.shape = shapes.try_emplace(std::move(signature), shapes.size()).first->second;
  }
  known.resize(shapes.size());
  seen.resize(shapes.size());
}

static int64_t weightOf(const ResidencyWay &way, const ResidencyPrices &prices) {
  double seconds = 0;
  for (const ResidencyCharge &charge : way.charges)
    seconds += prices.seconds[charge.resource] * charge.seconds;
  for (const ResidencyHold &hold : way.holds)
    seconds += prices.everywhere * double(hold.bytes) * double(hold.end - hold.begin);
  for (const ResidencyHold &hold : way.holds)
    for (auto at = prices.bytes.lower_bound({hold.space, hold.begin});
         at != prices.bytes.end() && at->first < ResidencyMoment{hold.space, hold.end}; ++at)
      seconds += at->second * double(hold.bytes);
  return int64_t(std::min(std::floor(seconds * kPerSecond), double(kDearest)));
}

/// Two weights a value: its cheapest home, and making it again. `homes` says which home that is.
ResidencyParts::Weights ResidencyParts::weigh(const ResidencyPart &part, const ResidencyPrices &prices,
                                              Ways &homes) const {
  Weights weights;
  for (uint32_t value : part.values) {
    const ResidencyValue &entry = problem.values[value];
    int64_t least = kForbidden;
    homes.push_back(kNotHad);
    for (size_t home = 0; home < entry.homes.size(); ++home)
      if (int64_t weight = weightOf(entry.homes[home], prices); weight < least || homes.back() == kNotHad)
        least = weight, homes.back() = int32_t(home);
    weights.insert(weights.end(), {least, entry.again ? weightOf(*entry.again, prices) : kForbidden});
  }
  return weights;
}

ResidencyParts::Choice ResidencyParts::solve(const ResidencyPart &part, const Weights &weights) const {
  // Node 2v: value v is had; node 2v + 1: it is made again.
  ClosureProblem closure;
  for (uint32_t local = 0; local < part.values.size(); ++local) {
    const ResidencyValue &entry = problem.values[part.values[local]];
    int64_t home = weights[2 * local], again = weights[2 * local + 1];
    closure.nodes.push_back({home, entry.isRead});
    closure.nodes.push_back({again - home, false});
    closure.implications.emplace_back(2 * local + 1, 2 * local);
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
    choice.ways.push_back(!chosen[2 * local] ? kNotHad : chosen[2 * local + 1] ? kMadeAgain : 0);
  return choice;
}

Ways ResidencyParts::choose(const ResidencyPrices &prices, double &cost) {
  Ways ways(problem.values.size(), kNotHad);
  for (const ResidencyPart &part : parts) {
    Ways homes;
    Weights weights = weigh(part, prices, homes);
    auto [place, isNew] = known[part.shape].try_emplace(std::move(weights));
    if (isNew)
      place->second = solve(part, place->first);
    const Choice &choice = place->second;
    cost += double(choice.weight) / kPerSecond;
    for (size_t local = 0; local < part.values.size(); ++local)
      ways[part.values[local]] = choice.ways[local] == 0 ? homes[local] : choice.ways[local];
  }
  dropUnused(problem, ways);
  for (const ResidencyPart &part : parts) {
    Ways local;
    for (uint32_t value : part.values)
      local.push_back(ways[value]);
    seen[part.shape].insert(std::move(local));
  }
  return ways;
}

/// Operands come before what is made of them, so one walk from behind sees all readers first.
void dropUnused(const ResidencyProblem &problem, Ways &ways) {
  std::vector<bool> isUsed(ways.size());
  for (size_t value = ways.size(); value-- > 0;) {
    if (!problem.values[value].isRead && !isUsed[value])
      ways[value] = kNotHad;
    if (ways[value] == kMadeAgain)
      for (uint32_t operand : problem.values[value].operands)
        isUsed[operand] = true;
  }
}

} // namespace ds::analysis::detail
