//===- ResidencyOracle.cpp - The best plan of a small residency problem --------------===//
#include "ResidencyOracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace ds::analysis {

namespace {

/// Rounds of the search for prices.
constexpr int kPriceRounds = 400;

/// One way to have a value, with all that it takes as numbers.
struct Branch {
  int32_t way = kNotHad;
  std::vector<double> work;                          ///< of each resource
  std::vector<std::pair<uint32_t, int64_t>> changes; ///< row and bytes, once a row
  double priced = 0;                                 ///< at the prices that were found
};

/// What some values take at least.
struct Least {
  std::vector<double> work;   ///< of each resource
  std::vector<int64_t> bytes; ///< of each row
  double priced = 0;
};

/// The row of each moment, by space.
using RowNumbers = std::vector<std::vector<uint32_t>>;

class Oracle {
public:
  Oracle(const ResidencyProblem &problem, std::optional<double> above, double near, int64_t mostSteps);
  ResidencyBest run();

private:
  RowNumbers addRows();
  Branch branchOf(const RowNumbers &rowNumber, int32_t number, const ResidencyWay *way) const;
  double pricedAt(const std::vector<double> &weights, const std::vector<double> &prices,
                  std::vector<double> *work, std::vector<int64_t> *bytes);
  void findPrices();
  void findLeast();
  bool mayBeBetter(size_t value, double priced) const;
  void visit(size_t value, double priced);
  void accept();

  const ResidencyProblem &problem;
  const double near;
  const int64_t mostSteps;
  double limit; ///< seconds that a choice has to be below
  ResidencyBest best;

  std::vector<std::vector<Branch>> branches; ///< of each value
  std::vector<int64_t> left;                 ///< bytes that are free now, of each row: moments that are alike
  std::vector<double> work;                  ///< of each resource now
  std::vector<int32_t> ways;
  std::vector<bool> isNeeded; ///< read, or an operand of what is recomputed so far: values come last first
  std::vector<Least> least;   ///< of the first values, by their number
  double constant = 0;        ///< at the prices, whatever is chosen
};

Oracle::Oracle(const ResidencyProblem &problem, std::optional<double> above, double near, int64_t mostSteps)
    : problem(problem), near(near), mostSteps(mostSteps),
      limit(above ? *above * (1 - near) : std::numeric_limits<double>::infinity()), work(problem.resources),
      ways(problem.values.size(), kNotHad) {
  const RowNumbers rowNumber = addRows();
  for (const ResidencyValue &value : problem.values) {
    isNeeded.push_back(value.isRead);
    branches.emplace_back();
    if (!value.isRead)
      branches.back().push_back(branchOf(rowNumber, kNotHad, nullptr));
    for (size_t home = 0; home < value.homes.size(); ++home)
      branches.back().push_back(branchOf(rowNumber, int32_t(home), &value.homes[home]));
    if (value.recompute)
      branches.back().push_back(branchOf(rowNumber, kRecomputed, &*value.recompute));
  }
}

/// Moments at which the same holds are held are one row, with the fewest bytes that are free at one of them.
RowNumbers Oracle::addRows() {
  RowNumbers rowNumber;
  for (uint32_t space = 0; space < problem.spaces.size(); ++space) {
    const ResidencySpace &of = problem.spaces[space];
    std::vector<bool> isBorder(of.liveBytes.size() + 1);
    auto mark = [&](const ResidencyWay &way) {
      for (const ResidencyHold &hold : way.holds)
        if (hold.space == space && hold.begin < hold.end)
          isBorder[hold.begin] = isBorder[hold.end] = true;
    };
    for (const ResidencyValue &value : problem.values) {
      for (const ResidencyWay &home : value.homes)
        mark(home);
      if (value.recompute)
        mark(*value.recompute);
    }
    rowNumber.emplace_back();
    for (uint32_t moment = 0; moment < of.liveBytes.size(); ++moment) {
      if (moment == 0 || isBorder[moment])
        left.push_back(std::numeric_limits<int64_t>::max());
      left.back() = std::min(left.back(), of.budget - of.liveBytes[moment]);
      rowNumber.back().push_back(uint32_t(left.size() - 1));
    }
  }
  return rowNumber;
}

Branch Oracle::branchOf(const RowNumbers &rowNumber, int32_t number, const ResidencyWay *way) const {
  Branch branch{number, std::vector<double>(problem.resources.size()), {}};
  if (!way)
    return branch;
  for (const ResidencyCharge &charge : way->charges)
    branch.work[charge.resource] += charge.seconds;
  std::vector<int64_t> bytes(left.size());
  for (const ResidencyHold &hold : way->holds)
    for (uint32_t moment = hold.begin; moment < hold.end; ++moment) {
      const uint32_t row = rowNumber[hold.space][moment];
      if (moment == hold.begin || rowNumber[hold.space][moment - 1] != row)
        bytes[row] += hold.bytes;
    }
  for (uint32_t row = 0; row < bytes.size(); ++row)
    if (bytes[row] != 0)
      branch.changes.emplace_back(row, bytes[row]);
  return branch;
}

/// The least cost of all values by themselves, and what that choice takes.
double Oracle::pricedAt(const std::vector<double> &weights, const std::vector<double> &prices,
                        std::vector<double> *taken, std::vector<int64_t> *bytes) {
  constant = 0;
  for (size_t resource = 0; resource < weights.size(); ++resource)
    constant += weights[resource] * problem.resources[resource];
  for (size_t row = 0; row < prices.size(); ++row)
    if (prices[row] > 0)
      constant -= prices[row] * double(left[row]);
  double sum = constant;
  for (std::vector<Branch> &of : branches) {
    const Branch *cheapest = nullptr;
    for (Branch &branch : of) {
      branch.priced = std::inner_product(weights.begin(), weights.end(), branch.work.begin(), 0.0);
      for (auto [row, more] : branch.changes)
        branch.priced += prices[row] * double(more);
      if (!cheapest || branch.priced < cheapest->priced)
        cheapest = &branch;
    }
    sum += cheapest->priced;
    for (size_t resource = 0; taken && resource < weights.size(); ++resource)
      (*taken)[resource] += cheapest->work[resource];
    for (size_t change = 0; bytes && change < cheapest->changes.size(); ++change)
      (*bytes)[cheapest->changes[change].first] += cheapest->changes[change].second;
  }
  return sum;
}

/// Prices of bytes and weights of resources by subgradients; the best that were seen stay in `branches`.
void Oracle::findPrices() {
  const size_t resources = problem.resources.size();
  std::vector<double> weights(resources, 1.0 / double(resources)), prices(left.size());
  std::vector<double> bestWeights = weights, bestPrices = prices;
  double most = -std::numeric_limits<double>::infinity();
  const double aim = std::isfinite(limit) ? limit : 2 * *std::max_element(work.begin(), work.end()) + 1;
  double step = 1;
  for (int round = 0, stale = 0; round < kPriceRounds; ++round) {
    std::vector<double> taken = problem.resources;
    std::vector<int64_t> bytes(left.size());
    const double bound = pricedAt(weights, prices, &taken, &bytes);
    if (bound > most)
      most = bound, bestWeights = weights, bestPrices = prices, stale = 0;
    else if (++stale == 15)
      step /= 2, stale = 0, weights = bestWeights, prices = bestPrices;
    // Bytes count as shares of a row's, so that both slopes are of one size.
    double square = 1e-30;
    for (size_t row = 0; row < left.size(); ++row) {
      const double beyond = double(bytes[row] - left[row]);
      square += prices[row] > 0 || beyond > 0 ? beyond * beyond : 0;
    }
    const double length = step * std::max(aim - bound, 1e-3 * std::abs(aim)) / square;
    for (size_t row = 0; row < left.size(); ++row)
      prices[row] = std::max(0.0, prices[row] + length * double(bytes[row] - left[row]));
    // Weights by factors, which keeps them on the simplex.
    const double busiest = *std::max_element(taken.begin(), taken.end());
    double sum = 0;
    for (size_t resource = 0; resource < resources; ++resource)
      sum += weights[resource] *= std::exp(2 * step * (taken[resource] - busiest) / std::max(busiest, 1e-30));
    for (double &weight : weights)
      weight = std::max(weight / sum, 1e-12);
    sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double &weight : weights)
      weight /= sum;
  }
  pricedAt(bestWeights, bestPrices, nullptr, nullptr);
}

/// What values before each take at least.
void Oracle::findLeast() {
  least.assign(1, {std::vector<double>(work.size()), std::vector<int64_t>(left.size())});
  for (std::vector<Branch> &of : branches) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    Least here{std::vector<double>(work.size(), kInfinite),
               std::vector<int64_t>(left.size(), std::numeric_limits<int64_t>::max()), kInfinite};
    for (const Branch &branch : of) {
      here.priced = std::min(here.priced, branch.priced);
      std::vector<int64_t> bytes(left.size());
      for (auto [row, more] : branch.changes)
        bytes[row] = more;
      for (size_t row = 0; row < left.size(); ++row)
        here.bytes[row] = std::min(here.bytes[row], bytes[row]);
      for (size_t resource = 0; resource < work.size(); ++resource)
        here.work[resource] = std::min(here.work[resource], branch.work[resource]);
    }
    Least sum = least.back();
    sum.priced += here.priced;
    for (size_t row = 0; row < left.size(); ++row)
      sum.bytes[row] += here.bytes[row];
    for (size_t resource = 0; resource < work.size(); ++resource)
      sum.work[resource] += here.work[resource];
    least.push_back(std::move(sum));
    // The cheapest first: good choices are found early.
    std::sort(of.begin(), of.end(), [](const Branch &a, const Branch &b) {
      return std::tie(a.priced, a.way) < std::tie(b.priced, b.way);
    });
  }
}

/// Whether a choice below the limit may be left, with values [0, value) open.
bool Oracle::mayBeBetter(size_t value, double priced) const {
  if (constant + priced + least[value].priced >= limit)
    return false;
  for (size_t resource = 0; resource < work.size(); ++resource)
    if (work[resource] + least[value].work[resource] >= limit)
      return false;
  for (size_t row = 0; row < left.size(); ++row)
    if (least[value].bytes[row] > left[row])
      return false;
  return true;
}

void Oracle::accept() {
  const double seconds = *std::max_element(work.begin(), work.end());
  if (seconds >= limit)
    return;
  best.seconds = seconds, best.ways = ways;
  limit = seconds * (1 - near);
}

/// Decides values from the last to the first, so that it is known of each whether anything is made of it.
void Oracle::visit(size_t value, double priced) {
  if (++best.steps > mostSteps || !mayBeBetter(value, priced))
    return;
  if (value == 0)
    return accept();
  const size_t at = value - 1;
  for (const Branch &branch : branches[at]) {
    if ((branch.way == kNotHad) == isNeeded[at])
      continue;
    std::vector<uint32_t> needed;
    for (size_t operand = 0; branch.way == kRecomputed && operand < problem.values[at].operands.size();
         ++operand)
      if (const uint32_t of = problem.values[at].operands[operand]; !isNeeded[of])
        isNeeded[of] = true, needed.push_back(of);
    for (auto [row, bytes] : branch.changes)
      left[row] -= bytes;
    for (size_t resource = 0; resource < work.size(); ++resource)
      work[resource] += branch.work[resource];
    ways[at] = branch.way;
    visit(at, priced + branch.priced);
    for (size_t resource = 0; resource < work.size(); ++resource)
      work[resource] -= branch.work[resource];
    for (auto [row, bytes] : branch.changes)
      left[row] += bytes;
    for (uint32_t of : needed)
      isNeeded[of] = false;
  }
}

ResidencyBest Oracle::run() {
  findPrices();
  findLeast();
  visit(branches.size(), 0);
  best.isProved = best.steps <= mostSteps;
  return best;
}

} // namespace

ResidencyBest findBestResidency(const ResidencyProblem &problem, std::optional<double> above, double near,
                                int64_t mostSteps) {
  return Oracle(problem, above, near, mostSteps).run();
}

} // namespace ds::analysis
