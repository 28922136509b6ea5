//===- ResidencyTurns.cpp - Two decisions one after the other ------------------------===//
//
// What passes do that come one after another: the first decides as if nothing came behind it, the second has
// what memory that leaves. It is what a joint choice is measured against.
//
//===---------------------------------------------------------------------------------===//
#include "ds/Analysis/Residency/Residency.h"

namespace ds::analysis {

/// `value` as it was decided: had in `way` alone. One that is not had may stay so.
static ResidencyValue fixWay(const ResidencyValue &value, int32_t way) {
  ResidencyValue fixed{value.isRead, {}, std::nullopt, {}};
  if (way >= 0)
    fixed.homes = {value.homes[way]};
  else if (way == kRecomputed)
    fixed.recompute = value.recompute, fixed.operands = value.operands;
  else
    fixed = value;
  return fixed;
}

Result<ResidencyPlan> solveInTurn(const ResidencyProblem &problem, const std::vector<bool> &isLater) {
  ResidencyProblem first = problem;
  for (size_t index = 0; index < problem.values.size(); ++index)
    if (isLater[index])
      first.values[index] =
          fixWay(problem.values[index], static_cast<int32_t>(problem.values[index].homes.size()) - 1);
  Result<ResidencyPlan> before = solveResidency(first);
  if (!before)
    return before;
  ResidencyProblem second = problem;
  for (size_t index = 0; index < problem.values.size(); ++index)
    if (!isLater[index])
      second.values[index] = fixWay(problem.values[index], before->ways[index]);
  Result<ResidencyPlan> plan = solveResidency(second);
  if (!plan)
    return plan;
  for (size_t index = 0; index < problem.values.size(); ++index)
    if (!isLater[index] && before->ways[index] != kNotHad)
      plan->ways[index] = before->ways[index];
  return plan;
}

} // namespace ds::analysis
