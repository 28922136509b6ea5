//===- ResidencyGroup.h - A few values, decided anew exactly ----------------------===//
//
// Some values are taken out of what was chosen and decided anew, all else as it is, by branch and bound:
// seconds and bytes that the values which are left take at least, and what they cost at prices, end most
// branches. Moments that no way of theirs tells apart are one row, so that two values which are held in
// moments [3, 90) and [5, 80) of one space make five rows, of whatever length.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYGROUP_H
#define DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYGROUP_H

#include "HeldBytes.h"
#include "ResidencySolver.h"

namespace ds::analysis::detail {

/// Calls `visit` with each way of `value`, and its number.
template <typename Visit>
void visitWays(const ResidencyValue &value, Visit visit) {
  for (size_t home = 0; home < value.homes.size(); ++home)
    visit(int32_t(home), value.homes[home]);
  if (value.recompute)
    visit(kRecomputed, *value.recompute);
}

/// How good a choice is: bytes beyond a budget, seconds of the busiest resource, and of all.
struct ResidencyScore {
  int64_t beyond = 0;
  double busiest = 0, all = 0;
  /// Whether it is better than `other` by more than rounding.
  bool isBelow(const ResidencyScore &other) const;
};

/// Moments [begin, end) of one space, which no way of a group tells apart.
struct ResidencyRow {
  uint32_t space = 0, begin = 0, end = 0;
};

/// One way of a value of the group.
struct ResidencyBranch {
  int32_t way = kNotHad;
  double price = 0;
  std::vector<double> work;   ///< of each resource
  std::vector<int64_t> bytes; ///< of each row
};

/// What is taken at least: seconds of each resource, bytes of each row, and both at prices.
struct ResidencyLeast {
  std::vector<double> work;
  std::vector<int64_t> bytes;
  double price = 0;
};

/// Prices: no choice within the budgets takes fewer seconds than it costs by them, beside the budgets.
struct GroupPrices {
  const ResidencyPrices &of;
  ResidencyPriceSums sums;
  double priceOf(const ResidencyWay &way) const;
};

/// All that is chosen, and what that takes.
struct ResidencyChosen {
  Ways &ways;
  std::vector<double> work;    ///< of each resource
  std::vector<HeldBytes> held; ///< of each space
};

/// The values of a group, decided anew.
class ResidencyGroup {
public:
  /// `numNeeding` says of each of `values`, which ascend, by how much outside of the group it is needed.
  ResidencyGroup(const ResidencyProblem &problem, const GroupPrices &prices, std::vector<uint32_t> values,
                 std::vector<uint32_t> numNeeding, ResidencyChosen &all);
  /// Whether another choice is better; it is made then. Takes its steps from `steps`.
  bool improve(int64_t &steps);

private:
  static constexpr int64_t kMostSteps = 4000;

  void hold(int64_t sign);
  void addRows();
  void addBranches();
  double priceOfOthers() const;
  void addLeast();
  ResidencyScore leastWith(size_t open) const;
  ResidencyScore scoreNow() const;
  bool mayBe(size_t value, const ResidencyBranch &branch) const;
  void need(size_t value, const ResidencyBranch &branch, uint32_t more);
  void visit(size_t open, double price);

  const ResidencyProblem &problem;
  const GroupPrices &prices;
  const std::vector<uint32_t> values;
  std::vector<uint32_t> numNeeding; ///< with what is chosen so far
  ResidencyChosen &all;             ///< the group's values do not count while it is decided
  std::vector<ResidencyRow> rows;
  std::vector<int64_t> left;                          ///< bytes of each row that are free
  std::vector<std::vector<ResidencyBranch>> branches; ///< of each value
  std::vector<ResidencyLeast> least;                  ///< of the first values, by their number
  Ways chosen;
  std::pair<ResidencyScore, Ways> best;
  int64_t stepsLeft = kMostSteps;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYGROUP_H
