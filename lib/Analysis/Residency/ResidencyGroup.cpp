//===- ResidencyGroup.cpp - A few values, decided anew exactly --------------------===//
#include "ResidencyGroup.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ds::analysis::detail {

/// A share of the bound that is no gain.
static constexpr double kNoGain = 1e-9;

bool ResidencyScore::isBelow(const ResidencyScore &other) const {
  if (beyond != other.beyond)
    return beyond < other.beyond;
  const double margin = kNoGain * other.busiest;
  return busiest < other.busiest - margin ||
         (busiest < other.busiest + margin && all < other.all - kNoGain * other.all);
}

double GroupPrices::priceOf(const ResidencyWay &way) const {
  double price = 0;
  for (const ResidencyCharge &charge : way.charges)
    price += of.seconds[charge.resource] * charge.seconds;
  for (const ResidencyHold &entry : way.holds)
    price += sums.of(entry) * double(entry.bytes);
  return price;
}

ResidencyGroup::ResidencyGroup(const ResidencyProblem &problem, const GroupPrices &prices,
                               std::vector<uint32_t> values, std::vector<uint32_t> numNeeding,
                               ResidencyChosen &all)
    : problem(problem), prices(prices), values(std::move(values)), numNeeding(std::move(numNeeding)),
      all(all), chosen(this->values.size()) {}

/// Adds what the group's values take now, or takes it away.
void ResidencyGroup::hold(int64_t sign) {
  for (uint32_t value : values)
    if (const ResidencyWay *way = wayOf(problem.values[value], all.ways[value])) {
      for (const ResidencyCharge &charge : way->charges)
        all.work[charge.resource] += double(sign) * charge.seconds;
      for (const ResidencyHold &entry : way->holds)
        all.held[entry.space].add(entry.begin, entry.end, sign * entry.bytes);
    }
}

void ResidencyGroup::addRows() {
  for (uint32_t space = 0; space < problem.spaces.size(); ++space) {
    std::vector<uint32_t> borders{0, uint32_t(problem.spaces[space].liveBytes.size())};
    for (uint32_t value : values)
      visitWays(problem.values[value], [&](int32_t, const ResidencyWay &way) {
        for (const ResidencyHold &entry : way.holds)
          if (entry.space == space && entry.begin < entry.end)
            borders.insert(borders.end(), {entry.begin, entry.end});
      });
    std::sort(borders.begin(), borders.end());
    borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
    for (size_t border = 0; border + 1 < borders.size(); ++border)
      rows.push_back({space, borders[border], borders[border + 1]});
  }
}

void ResidencyGroup::addBranches() {
  for (uint32_t value : values) {
    std::vector<ResidencyBranch> &of = branches.emplace_back();
    if (!problem.values[value].isRead)
      of.push_back({kNotHad, 0, std::vector<double>(all.work.size()), std::vector<int64_t>(rows.size())});
    visitWays(problem.values[value], [&](int32_t number, const ResidencyWay &way) {
      ResidencyBranch branch{number, prices.priceOf(way), std::vector<double>(all.work.size()),
                             std::vector<int64_t>(rows.size())};
      for (const ResidencyCharge &charge : way.charges)
        branch.work[charge.resource] += charge.seconds;
      for (const ResidencyHold &entry : way.holds)
        for (size_t row = 0; row < rows.size(); ++row)
          if (entry.space == rows[row].space && entry.begin <= rows[row].begin && rows[row].end <= entry.end)
            branch.bytes[row] += entry.bytes;
      of.push_back(std::move(branch));
    });
    // The cheapest first: good choices are found early.
    std::sort(of.begin(), of.end(), [](const ResidencyBranch &a, const ResidencyBranch &b) {
      return std::tie(a.price, a.way) < std::tie(b.price, b.way);
    });
  }
}

/// What all else costs, beside the budgets.
double ResidencyGroup::priceOfOthers() const {
  double price = std::inner_product(all.work.begin(), all.work.end(), prices.of.seconds.begin(), 0.0);
  for (auto [where, ofByte] : prices.of.bytes)
    price += ofByte * double(all.held[where.space].mostIn(where.moment, where.moment + 1) -
                             problem.spaces[where.space].budget);
  return price;
}

void ResidencyGroup::addLeast() {
  least.push_back({all.work, std::vector<int64_t>(rows.size()), priceOfOthers()});
  std::fill(least.back().work.begin(), least.back().work.end(), 0.0);
  for (const std::vector<ResidencyBranch> &of : branches) {
    ResidencyLeast next{of.front().work, of.front().bytes, least.back().price + of.front().price};
    for (const ResidencyBranch &branch : of) {
      for (size_t resource = 0; resource < next.work.size(); ++resource)
        next.work[resource] = std::min(next.work[resource], branch.work[resource]);
      for (size_t row = 0; row < rows.size(); ++row)
        next.bytes[row] = std::min(next.bytes[row], branch.bytes[row]);
    }
    auto addTo = [](auto &sums, const auto &before) {
      std::transform(sums.begin(), sums.end(), before.begin(), sums.begin(), std::plus<>());
    };
    addTo(next.work, least.back().work), addTo(next.bytes, least.back().bytes);
    least.push_back(std::move(next));
  }
}

/// What is reached at least with the first `open` values undecided.
ResidencyScore ResidencyGroup::leastWith(size_t open) const {
  ResidencyScore score;
  for (size_t row = 0; row < rows.size(); ++row)
    score.beyond = std::max(score.beyond, least[open].bytes[row] - left[row]);
  for (size_t resource = 0; resource < all.work.size(); ++resource) {
    const double seconds = all.work[resource] + least[open].work[resource];
    score.busiest = std::max(score.busiest, seconds), score.all += seconds;
  }
  return score;
}

/// What is reached now, with what the group's values take counted.
ResidencyScore ResidencyGroup::scoreNow() const {
  ResidencyScore score;
  for (const ResidencyRow &row : rows)
    score.beyond = std::max(score.beyond, all.held[row.space].mostIn(row.begin, row.end) -
                                              problem.spaces[row.space].budget);
  score.busiest = *std::max_element(all.work.begin(), all.work.end());
  score.all = std::accumulate(all.work.begin(), all.work.end(), 0.0);
  return score;
}

/// Whether `branch` may be the way of `values[value]`: the value is had where it is needed, and there alone,
/// and what it is made of is in the group or had.
bool ResidencyGroup::mayBe(size_t value, const ResidencyBranch &branch) const {
  if ((branch.way == kNotHad) != (numNeeding[value] == 0))
    return false;
  if (branch.way != kRecomputed)
    return true;
  const std::vector<uint32_t> &operands = problem.values[values[value]].operands;
  return std::all_of(operands.begin(), operands.end(), [&](uint32_t operand) {
    return all.ways[operand] != kNotHad || std::binary_search(values.begin(), values.end(), operand);
  });
}

/// Counts what `branch` needs of the group, or with -1 no longer.
void ResidencyGroup::need(size_t value, const ResidencyBranch &branch, uint32_t more) {
  if (branch.way != kRecomputed)
    return;
  for (uint32_t operand : problem.values[values[value]].operands)
    if (auto at = std::lower_bound(values.begin(), values.end(), operand);
        at != values.end() && *at == operand)
      numNeeding[at - values.begin()] += more;
}

/// Decides values from the last to the first: what is made of each is known then.
void ResidencyGroup::visit(size_t open, double price) {
  if (--stepsLeft < 0)
    return;
  if (best.first.beyond == 0 && least[open].price + price > best.first.busiest * (1 + kNoGain))
    return;
  const ResidencyScore score = leastWith(open);
  if (!score.isBelow(best.first))
    return;
  if (open == 0) {
    best = {score, chosen};
    return;
  }
  const size_t value = open - 1;
  for (const ResidencyBranch &branch : branches[value]) {
    if (!mayBe(value, branch))
      continue;
    for (size_t resource = 0; resource < all.work.size(); ++resource)
      all.work[resource] += branch.work[resource];
    for (size_t row = 0; row < rows.size(); ++row)
      left[row] -= branch.bytes[row];
    need(value, branch, 1);
    chosen[value] = branch.way;
    visit(value, price + branch.price);
    need(value, branch, uint32_t(-1));
    for (size_t row = 0; row < rows.size(); ++row)
      left[row] += branch.bytes[row];
    for (size_t resource = 0; resource < all.work.size(); ++resource)
      all.work[resource] -= branch.work[resource];
  }
}

bool ResidencyGroup::improve(int64_t &steps) {
  addRows();
  best.first = scoreNow();
  hold(-1);
  for (const ResidencyRow &row : rows)
    left.push_back(problem.spaces[row.space].budget - all.held[row.space].mostIn(row.begin, row.end));
  addBranches();
  addLeast();
  const std::vector<double> others = all.work;
  visit(values.size(), 0);
  all.work = others; // sums and differences do not end where they began
  steps -= kMostSteps - std::max<int64_t>(0, stepsLeft);
  for (size_t value = 0; value < best.second.size(); ++value)
    all.ways[values[value]] = best.second[value];
  hold(+1);
  return !best.second.empty();
}

} // namespace ds::analysis::detail
