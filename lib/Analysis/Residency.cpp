//===- Residency.cpp - Prices of bytes and seconds --------------------------------===//
//
// For given weights of the resources: start without a price on memory; where a budget is exceeded most, find
// the least price there by which it no longer is; go on until nothing is exceeded. Few moments bind (the turn
// of a step, the head of the loss, the update), so few rounds do. Around that the busier resource gains
// weight.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Residency.h"

#include "ResidencySolver.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace ds::analysis {

using namespace detail;

namespace detail {

ResidencyLoad loadOf(const ResidencyProblem &problem, const Ways &ways) {
  // By what changes from one moment to the next: a hold may be as long as the step.
  ResidencyLoad load;
  load.work = problem.resources;
  std::vector<std::vector<int64_t>> changes;
  for (const ResidencySpace &space : problem.spaces)
    changes.emplace_back(space.liveBytes.size() + 1, 0);
  for (size_t value = 0; value < ways.size(); ++value) {
    const ResidencyWay *way = wayOf(problem.values[value], ways[value]);
    for (size_t hold = 0; way && hold < way->holds.size(); ++hold) {
      const ResidencyHold &entry = way->holds[hold];
      changes[entry.space][entry.begin] += entry.bytes, changes[entry.space][entry.end] -= entry.bytes;
    }
    for (size_t charge = 0; way && charge < way->charges.size(); ++charge)
      load.work[way->charges[charge].resource] += way->charges[charge].seconds;
  }
  for (size_t space = 0; space < changes.size(); ++space) {
    load.bytes.push_back(problem.spaces[space].liveBytes);
    int64_t held = 0;
    for (size_t moment = 0; moment < load.bytes[space].size(); ++moment)
      load.bytes[space][moment] += held += changes[space][moment];
  }
  return load;
}

std::pair<int64_t, ResidencyMoment> mostExceeded(const ResidencyProblem &problem, const ResidencyLoad &load) {
  std::pair<int64_t, ResidencyMoment> most{0, {}};
  for (uint32_t space = 0; space < load.bytes.size(); ++space)
    for (uint32_t moment = 0; moment < load.bytes[space].size(); ++moment)
      if (int64_t beyond = load.bytes[space][moment] - problem.spaces[space].budget; beyond > most.first)
        most = {beyond, {space, moment}};
  return most;
}

} // namespace detail

namespace {

/// Moments that may bind at one weight of the resources, and rounds of the search for weights.
constexpr int kMostMoments = 24, kMostWeights = 10;
/// Times a typical price: beyond what any seconds are worth.
constexpr double kDear = 100;
/// Weight of a resource that is not to decide; and a distance from the bound that is not worth a search.
constexpr double kLittle = 1e-3, kNear = 1e-3;
/// Where the search for a price ends, as a share of it.
constexpr double kNarrow = 1e-4;

class ResidencySolver {
public:
  explicit ResidencySolver(const ResidencyProblem &problem) : problem(problem), parts(problem) {}
  ResidencyPlan solve();

private:
  struct Point {
    Ways ways;
    ResidencyLoad load;
  };

  Point at(const ResidencyPrices &prices);
  bool raise(ResidencyPrices &prices, ResidencyMoment where, Point &point);
  Point findPoint(ResidencyPrices &prices);
  void keepBest(Ways ways);
  bool findLeast(const std::vector<double> &weights);
  double boundAt(const std::vector<double> &weights);
  void searchWeights(std::vector<double> weights);
  double typicalPrice(std::optional<ResidencyMoment> where) const;
  bool isNear() const { return best && best->fits && best->seconds <= bound * (1 + kNear); }

  const ResidencyProblem &problem;
  ResidencyParts parts;
  std::map<ResidencyMoment, double> last; ///< prices of bytes that the search before ended with
  double bound = 0;
  std::optional<ResidencyPlan> best;
  Ways leastWays; ///< of the fewest bytes
};

/// The cheapest choice at `prices`. No choice within the budgets takes less than it costs there.
ResidencySolver::Point ResidencySolver::at(const ResidencyPrices &prices) {
  double cost = 0;
  Point point{parts.choose(prices, cost), {}};
  point.load = loadOf(problem, point.ways);
  for (size_t resource = 0; resource < problem.resources.size(); ++resource)
    cost += prices.seconds[resource] * problem.resources[resource];
  for (auto [where, price] : prices.bytes) {
    const ResidencySpace &space = problem.spaces[where.space];
    cost += price * double(space.liveBytes[where.moment] - space.budget);
  }
  bound = std::max(bound, cost);
  return point;
}

/// A price at which a byte matters: all seconds that values may cost for all bytes that they may hold at
/// `where`; without it, at any moment.
double ResidencySolver::typicalPrice(std::optional<ResidencyMoment> where) const {
  double seconds = 1e-9, bytes = 1;
  auto add = [&](const ResidencyWay &way) {
    for (const ResidencyCharge &charge : way.charges)
      seconds += charge.seconds;
    for (const ResidencyHold &hold : way.holds)
      if (!where)
        bytes += double(hold.bytes) * double(hold.end - hold.begin);
      else if (hold.space == where->space && hold.begin <= where->moment && where->moment < hold.end)
        bytes += double(hold.bytes);
  };
  for (const ResidencyValue &value : problem.values) {
    for (const ResidencyWay &home : value.homes)
      add(home);
    if (value.again)
      add(*value.again);
  }
  return seconds / bytes;
}

/// Raises the price at `where` to the least by which the budget holds there, and leaves the choice at that
/// price in `point`. False where none does. The search begins at the price that the last one
/// ended with.
bool ResidencySolver::raise(ResidencyPrices &prices, ResidencyMoment where, Point &point) {
  double &price = prices.bytes[where], low = 0, high = last.count(where) ? last[where] : typicalPrice(where);
  const int64_t budget = problem.spaces[where.space].budget;
  auto holds = [&](double tried) {
    price = tried;
    point = at(prices);
    return point.load.bytes[where.space][where.moment] <= budget;
  };
  for (int doublings = 0; !holds(high); ++doublings) {
    low = high, high *= 4;
    if (doublings > 20)
      return false;
  }
  for (int round = 0; round < 30 && high - low > kNarrow * high; ++round) {
    double middle = (low + high) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return holds(high);
}

ResidencySolver::Point ResidencySolver::findPoint(ResidencyPrices &prices) {
  Point point = at(prices);
  for (int round = 0; round < kMostMoments; ++round) {
    auto [beyond, where] = mostExceeded(problem, point.load);
    if (beyond == 0 || !raise(prices, where, point))
      break;
  }
  return point;
}

/// Keeps `ways` if they are better than what is known: less beyond a budget, then sooner done, then less
/// work.
void ResidencySolver::keepBest(Ways ways) {
  if (isNear())
    return;
  if (mostExceeded(problem, loadOf(problem, ways)).first == 0)
    fillSlack(problem, parts, ways);
  ResidencyLoad load = loadOf(problem, ways);
  ResidencyPlan plan;
  plan.fits = mostExceeded(problem, load).first == 0;
  plan.work = load.work;
  for (double work : load.work)
    plan.seconds = std::max(plan.seconds, work);
  for (const std::vector<int64_t> &bytes : load.bytes)
    plan.peakBytes.push_back(bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end()));
  plan.ways = std::move(ways);
  auto key = [&](const ResidencyPlan &of) {
    double all = 0;
    for (double work : of.work)
      all += work;
    int64_t beyond = 0;
    for (size_t space = 0; space < problem.spaces.size(); ++space)
      beyond = std::max(beyond, of.peakBytes[space] - problem.spaces[space].budget);
    return std::tuple(beyond, of.seconds, all);
  };
  if (!best || key(plan) < key(*best))
    best = std::move(plan);
}

/// The bound that prices on bytes reach at `weights`, which is concave in them. What they choose is kept.
double ResidencySolver::boundAt(const std::vector<double> &weights) {
  double others = std::exchange(bound, 0);
  ResidencyPrices prices{{}, weights};
  keepBest(findPoint(prices).ways);
  last = prices.bytes;
  double reached = bound;
  bound = std::max(bound, others);
  return reached;
}

/// Each resource's share in turn, the others' as they were to each other, by the golden section.
void ResidencySolver::searchWeights(std::vector<double> weights) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  for (size_t resource = 0; resource + 1 < weights.size(); ++resource) {
    auto share = [&](double part) {
      std::vector<double> shares = weights;
      for (double &other : shares)
        other *= (1 - part) / (1 - weights[resource]);
      shares[resource] = part;
      return shares;
    };
    double low = 0, high = 1, left = 1 - ratio, right = ratio;
    double atLeft = boundAt(share(left)), atRight = boundAt(share(right));
    for (int round = 0; round < kMostWeights && !isNear(); ++round) {
      if (atLeft > atRight) {
        high = right, right = left, atRight = atLeft;
        left = high - ratio * (high - low), atLeft = boundAt(share(left));
      } else {
        low = left, left = right, atLeft = atRight;
        right = low + ratio * (high - low), atRight = boundAt(share(right));
      }
    }
    weights = share((low + high) / 2);
  }
}

/// As little as can be held: what prices far above all seconds choose. False where some moment's budget does
/// not hold even if bytes count nowhere else: then nothing fits, and little is held at all moments, for the
/// moment that is the fullest here need not be so in the end.
bool ResidencySolver::findLeast(const std::vector<double> &weights) {
  ResidencyPrices all{{}, weights};
  Point least = at(all);
  for (int round = 0; round < kMostMoments; ++round) {
    auto [beyond, where] = mostExceeded(problem, least.load);
    if (beyond == 0 || all.bytes.count(where))
      break;
    double price = all.bytes[where] = kDear * typicalPrice(where);
    Point alone = at({{{where, price}}, weights});
    if (alone.load.bytes[where.space][where.moment] > problem.spaces[where.space].budget) {
      double cost = 0;
      best.reset();
      keepBest(parts.choose({{}, weights, kDear * typicalPrice(std::nullopt)}, cost));
      return false;
    }
    keepBest(alone.ways);
    least = at(all);
  }
  keepBest(least.ways);
  leastWays = std::move(least.ways);
  return true;
}

ResidencyPlan ResidencySolver::solve() {
  const size_t count = problem.resources.size();
  const std::vector<double> equal(count, 1.0 / double(count));
  // Almost all weight on one resource: where it alone limits the step and memory is free, that is the answer.
  auto tryAlone = [&](double little) {
    for (size_t resource = 0; resource < count && !isNear(); ++resource) {
      std::vector<double> weights(count, little);
      weights[resource] = 1 - little * double(count - 1);
      boundAt(weights);
    }
  };
  tryAlone(kLittle);
  if (!isNear() && findLeast(equal)) {
    boundAt(equal);
    searchWeights(equal);
    tryAlone(0);
    // Once more from both ends, now that all choices have been seen.
    keepBest(best->ways);
    keepBest(leastWays);
  }
  best->bound = std::min(bound, best->seconds);
  return *best;
}

/// What a problem must satisfy for the solver's arrays.
std::optional<std::string> findFault(const ResidencyProblem &problem, const ResidencyWay &way) {
  for (const ResidencyHold &hold : way.holds)
    if (hold.space >= problem.spaces.size() || hold.begin > hold.end || hold.bytes < 0 ||
        hold.end > problem.spaces[hold.space].liveBytes.size())
      return "holds " + std::to_string(hold.bytes) + " bytes in moments [" + std::to_string(hold.begin) +
             ", " + std::to_string(hold.end) + ") of space " + std::to_string(hold.space) +
             ", which are out of range";
  for (const ResidencyCharge &charge : way.charges)
    if (charge.resource >= problem.resources.size() || !(charge.seconds >= 0))
      return "charges " + std::to_string(charge.seconds) + " s to resource " +
             std::to_string(charge.resource);
  return std::nullopt;
}

std::optional<std::string> findFault(const ResidencyProblem &problem) {
  if (problem.resources.empty())
    return "expects a resource, but got none";
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const ResidencyValue &value = problem.values[index];
    std::string name = "value " + std::to_string(index) + " ";
    if (value.isRead && value.homes.empty() && !value.again)
      return name + "is read, but cannot be had";
    for (uint32_t operand : value.operands)
      if (operand >= index)
        return name + "expects operands before it, but got value " + std::to_string(operand);
    for (const ResidencyWay &home : value.homes)
      if (std::optional<std::string> fault = findFault(problem, home))
        return name + *fault;
    if (std::optional<std::string> fault = value.again ? findFault(problem, *value.again) : std::nullopt)
      return name + *fault;
  }
  return std::nullopt;
}

} // namespace

Result<ResidencyPlan> solveResidency(const ResidencyProblem &problem) {
  if (std::optional<std::string> fault = findFault(problem))
    return Error{ExitCode::Internal, *fault, ""};
  return ResidencySolver(problem).solve();
}

} // namespace ds::analysis
