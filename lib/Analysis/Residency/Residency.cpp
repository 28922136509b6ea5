//===- Residency.cpp - Prices of bytes and seconds --------------------------------===//
//
// For given weights of the resources: start without a price on memory; where a budget is exceeded most, find
// the least price there by which it no longer is; go on until nothing is exceeded. Few moments bind (the turn
// of a step, the head of the loss, the update), so few rounds do. Around that the busier resource gains
// weight.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Residency/Residency.h"

#include "ResidencySolver.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace ds::analysis {

using namespace detail;

namespace {

/// Moments that may bind at one weight of the resources, and rounds of the search for weights.
constexpr int kMostMoments = 24, kMostWeights = 10;
/// Times a typical price: beyond what any seconds are worth; and where a search for a price begins at most.
constexpr double kDear = 100, kSenseless = 1e6;
/// Weight of a resource that is not to decide; and a distance from the bound that is not worth a search.
constexpr double kLittle = 1e-3, kNear = 1e-3;
/// Times another resource's work: that one has nothing to say.
constexpr double kFarBusier = 2;
/// Where the search for a price ends, as a share of it; and shares by which costs differ that are the same.
constexpr double kNarrow = 1e-4, kSame = 1e-9;

/// A price that was tried: the cost there, and the bytes beyond the budget, which is how the cost grows.
struct Tried {
  double price = 0, cost = 0;
  int64_t beyond = 0;
};

class ResidencySolver {
public:
  explicit ResidencySolver(const ResidencyProblem &problem) : problem(problem), parts(problem) {}
  ResidencyPlan solve();

private:
  struct Point {
    Ways ways;
    double cost = 0;
  };
  /// What the search for prices ends with at some weights: the bound, and what is chosen there.
  struct Reached {
    double bound = 0;
    Ways ways;
  };

  Point at(const ResidencyPrices &prices);
  int64_t bytesAt(const Ways &ways, ResidencyMoment where) const;
  bool raise(ResidencyPrices &prices, ResidencyMoment where, Point &point);
  Point findPoint(ResidencyPrices &prices);
  void keepBest(Ways ways);
  void tryAlone(double little);
  bool findLeast(const std::vector<double> &weights);
  bool isBeyondReach() const;
  void holdLittle(const std::vector<double> &weights);
  Reached searchPrices(const std::vector<double> &weights);
  double boundAt(const std::vector<double> &weights) { return searchPrices(weights).bound; }
  void searchWeights(std::vector<double> weights);
  double typicalPrice(std::optional<ResidencyMoment> where) const;
  bool isNear() const { return best && best->fits && best->seconds <= bound * (1 + kNear); }

  const ResidencyProblem &problem;
  ResidencyParts parts;
  std::vector<size_t> working;            ///< resources
  std::map<ResidencyMoment, double> last; ///< prices of bytes that the search before ended with
  std::set<Ways> kept;                    ///< what keepBest had of prices
  std::optional<size_t> limiting;         ///< the resource by which alone the step takes its time
  double bound = 0;
  std::pair<double, ResidencyPrices> highest{-1, {}}; ///< the bound, and prices that reach it
  std::optional<ResidencyPlan> best;
  Ways leastWays; ///< of the fewest bytes
};

/// The cheapest choice at `prices`. No choice within the budgets takes less than it costs there.
ResidencySolver::Point ResidencySolver::at(const ResidencyPrices &prices) {
  double cost = 0;
  Ways ways = parts.choose(prices, cost);
  for (size_t resource = 0; resource < problem.resources.size(); ++resource)
    cost += prices.seconds[resource] * problem.resources[resource];
  for (auto [where, price] : prices.bytes) {
    const ResidencySpace &space = problem.spaces[where.space];
    cost += price * double(space.liveBytes[where.moment] - space.budget);
  }
  bound = std::max(bound, cost);
  if (cost > highest.first)
    highest = {cost, prices};
  return {std::move(ways), cost};
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
    if (value.recompute)
      add(*value.recompute);
  }
  return seconds / bytes;
}

/// Bytes that `ways` hold at one moment.
int64_t ResidencySolver::bytesAt(const Ways &ways, ResidencyMoment where) const {
  int64_t bytes = problem.spaces[where.space].liveBytes[where.moment];
  for (size_t value = 0; value < ways.size(); ++value)
    if (const ResidencyWay *way = wayOf(problem.values[value], ways[value]))
      for (const ResidencyHold &hold : way->holds)
        if (hold.space == where.space && hold.begin <= where.moment && where.moment < hold.end)
          bytes += hold.bytes;
  return bytes;
}

/// Where the lines that touch the cost at `low` and `high` meet, which is where the cost is the most if they
/// are all that it is made of; their middle where they do not meet in between.
static double meetingOf(const Tried &low, const Tried &high) {
  const double slopes = double(low.beyond) - double(high.beyond);
  const double at =
      (high.cost - double(high.beyond) * high.price - low.cost + double(low.beyond) * low.price) / slopes;
  return at > low.price && at < high.price ? at : (low.price + high.price) / 2;
}

/// Raises the price at `where` to the least by which the budget holds there, and leaves the choice at that
/// price in `point`, which is the one without. False where none does. The cost is concave in the price, with
/// the bytes beyond the budget as its slope: lines that touch it on both sides lead to its top (Kelley 1960).
/// The search begins at the price that the last one ended with.
bool ResidencySolver::raise(ResidencyPrices &prices, ResidencyMoment where, Point &point) {
  const int64_t budget = problem.spaces[where.space].budget;
  double &price = prices.bytes[where];
  Point other;
  auto tryAt = [&](double tried) {
    price = tried;
    other = at(prices);
    return Tried{tried, other.cost, bytesAt(other.ways, where) - budget};
  };
  Tried low{price, point.cost, bytesAt(point.ways, where) - budget};
  // The last search may have ended far above all that makes sense, where no price held the budget.
  const double typical = typicalPrice(where);
  const double start = last.count(where) ? std::min(last[where], kSenseless * typical) : typical;
  Tried high = tryAt(std::max(start, 2 * low.price));
  for (int raised = 0; high.beyond > 0; ++raised) {
    if (raised > 20)
      return false;
    low = high;
    high = tryAt(4 * high.price);
  }
  point = other;
  bool isTop = false;
  for (int round = 0; round < 30 && high.price - low.price > kNarrow * high.price; ++round) {
    // Behind the top itself the budget holds. Now and then the middle: lines may creep along many corners.
    const double next = isTop            ? low.price * (1 + kNarrow / 2)
                        : round % 4 == 3 ? (low.price + high.price) / 2
                                         : meetingOf(low, high);
    const Tried tried = tryAt(next);
    const double line = low.cost + double(low.beyond) * (next - low.price);
    isTop = !isTop && tried.beyond > 0 && tried.cost >= line - kSame * std::abs(line);
    (tried.beyond > 0 ? low : high) = tried;
    if (tried.beyond <= 0)
      point = std::move(other);
  }
  price = high.price;
  return true;
}

ResidencySolver::Point ResidencySolver::findPoint(ResidencyPrices &prices) {
  Point point = at(prices);
  for (int round = 0; round < kMostMoments; ++round) {
    auto [beyond, where] = mostExceeded(problem, loadOf(problem, point.ways));
    if (beyond == 0 || !raise(prices, where, point))
      break;
  }
  return point;
}

/// Keeps `ways` if they are better than what is known: less beyond a budget, then sooner done, then less
/// work. What was kept before is not filled again: other weights choose the same again and again.
void ResidencySolver::keepBest(Ways ways) {
  if (isNear() || !kept.insert(ways).second)
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
ResidencySolver::Reached ResidencySolver::searchPrices(const std::vector<double> &weights) {
  double others = std::exchange(bound, 0);
  ResidencyPrices prices{{}, weights};
  Ways ways = findPoint(prices).ways;
  keepBest(ways);
  last = prices.bytes;
  double reached = bound;
  bound = std::max(bound, others);
  return {reached, std::move(ways)};
}

/// Each resource's share in turn, the others' as they were to each other, by the golden section.
void ResidencySolver::searchWeights(std::vector<double> weights) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  for (size_t turn = 0; turn + 1 < working.size(); ++turn) {
    const size_t resource = working[turn];
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

/// Whether some moment is beyond its budget whatever is chosen.
bool ResidencySolver::isBeyondReach() const {
  return std::any_of(problem.spaces.begin(), problem.spaces.end(), [](const ResidencySpace &space) {
    return std::any_of(space.liveBytes.begin(), space.liveBytes.end(),
                       [&](int64_t bytes) { return bytes > space.budget; });
  });
}

/// Makes the best what holds little at all moments.
void ResidencySolver::holdLittle(const std::vector<double> &weights) {
  double cost = 0;
  best.reset();
  kept.clear();
  keepBest(parts.choose({{}, weights, kDear * typicalPrice(std::nullopt)}, cost));
}

/// As little as can be held: what prices far above all seconds choose. False where some moment's budget does
/// not hold even if bytes count nowhere else: then nothing fits, and little is held at all moments, for the
/// moment that is the fullest here need not be so in the end.
bool ResidencySolver::findLeast(const std::vector<double> &weights) {
  ResidencyPrices all{{}, weights};
  Point least = at(all);
  for (int round = 0; round < kMostMoments; ++round) {
    auto [beyond, where] = mostExceeded(problem, loadOf(problem, least.ways));
    if (beyond == 0 || all.bytes.count(where))
      break;
    double price = all.bytes[where] = kDear * typicalPrice(where);
    Point alone = at({{{where, price}}, weights});
    if (bytesAt(alone.ways, where) > problem.spaces[where.space].budget) {
      holdLittle(weights);
      return false;
    }
    keepBest(alone.ways);
    least = at(all);
  }
  keepBest(least.ways);
  leastWays = std::move(least.ways);
  return true;
}

/// Those that work at all, or may. Each costs a search for its weight.
static std::vector<size_t> findWorking(const ResidencyProblem &problem) {
  std::vector<double> most = problem.resources;
  auto add = [&](const ResidencyWay &way) {
    for (const ResidencyCharge &charge : way.charges)
      most[charge.resource] += charge.seconds;
  };
  for (const ResidencyValue &value : problem.values) {
    for (const ResidencyWay &home : value.homes)
      add(home);
    if (value.recompute)
      add(*value.recompute);
  }
  std::vector<size_t> working;
  for (size_t resource = 0; resource < most.size(); ++resource)
    if (most[resource] > 0)
      working.push_back(resource);
  return working.empty() ? std::vector<size_t>{0} : working;
}

/// Almost all weight on one resource: where it alone limits the step and memory is free, that is the answer.
/// Where it is by far the busiest then, it is also the weight of the highest bound: the bound is concave in
/// the weights, and grows with another's by how much busier that is.
void ResidencySolver::tryAlone(double little) {
  for (size_t alone : limiting ? std::vector<size_t>{*limiting} : working) {
    if (isNear())
      return;
    std::vector<double> weights(problem.resources.size());
    for (size_t resource : working)
      weights[resource] = resource == alone ? 1 - little * double(working.size() - 1) : little;
    const std::vector<double> work = loadOf(problem, searchPrices(weights).ways).work;
    const bool isFarBusiest = std::all_of(working.begin(), working.end(), [&](size_t resource) {
      return resource == alone || kFarBusier * work[resource] < work[alone];
    });
    if (isFarBusiest) {
      limiting = alone;
      return;
    }
  }
}

ResidencyPlan ResidencySolver::solve() {
  working = findWorking(problem);
  std::vector<double> equal(problem.resources.size());
  for (size_t resource : working)
    equal[resource] = 1.0 / double(working.size());
  if (isBeyondReach()) { // no price is worth a search
    holdLittle(equal);
    return *best;
  }
  tryAlone(kLittle);
  if (!isNear() && findLeast(equal)) {
    if (!limiting) {
      boundAt(equal);
      searchWeights(equal);
    }
    tryAlone(0);
    // Once more from both ends, now that all choices have been seen.
    kept.clear();
    keepBest(best->ways);
    keepBest(leastWays);
    if (!isNear()) {
      Ways improved = best->ways;
      improveGroups(problem, highest.second, improved);
      keepBest(std::move(improved));
    }
  }
  best->bound = std::min(bound, best->seconds);
  return *best;
}

} // namespace

Result<ResidencyPlan> solveResidency(const ResidencyProblem &problem) {
  if (std::optional<std::string> fault = findFault(problem))
    return Error{ExitCode::Internal, *fault, ""};
  return ResidencySolver(problem).solve();
}

} // namespace ds::analysis
