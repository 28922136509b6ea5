//===- CheckResidency.cpp - Looks at a residency plan once more --------------------===//
//
// Sums up every moment on its own from the problem, so that a mistake of the solver's bookkeeping is none
// here.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Residency/Residency.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds::analysis {

namespace {

/// The ways that are taken, or what is wrong with one.
std::optional<std::string> findTaken(const ResidencyPlan &plan, const ResidencyProblem &problem,
                                     std::vector<ResidencyWay> &taken) {
  if (plan.ways.size() != problem.values.size())
    return "expects ways of " + std::to_string(problem.values.size()) + " values, but got " +
           std::to_string(plan.ways.size());
  for (size_t index = 0; index < plan.ways.size(); ++index) {
    const ResidencyValue &value = problem.values[index];
    const int32_t way = plan.ways[index];
    std::string name = "value " + std::to_string(index);
    if (way == kNotHad) {
      if (value.isRead)
        return name + " is read, but not had";
      continue;
    }
    if (way == kRecomputed ? !value.recompute : way < 0 || size_t(way) >= value.homes.size())
      return name + " has no way " + std::to_string(way);
    if (way == kRecomputed)
      for (uint32_t operand : value.operands)
        if (plan.ways[operand] == kNotHad)
          return name + " is recomputed from value " + std::to_string(operand) + ", which is not had";
    taken.push_back(way == kRecomputed ? *value.recompute : value.homes[way]);
  }
  return std::nullopt;
}

bool isClose(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(a) + std::abs(b)); }

} // namespace

std::optional<std::string> check(const ResidencyPlan &plan, const ResidencyProblem &problem) {
  std::vector<ResidencyWay> taken;
  if (std::optional<std::string> fault = findTaken(plan, problem, taken))
    return fault;
  bool fits = true;
  for (uint32_t space = 0; space < problem.spaces.size(); ++space) {
    const std::vector<int64_t> &live = problem.spaces[space].liveBytes;
    std::vector<int64_t> change(live.size() + 1, 0); // a value of the first layer is held through the step
    for (const ResidencyWay &way : taken)
      for (const ResidencyHold &hold : way.holds)
        if (hold.space == space && hold.begin < hold.end)
          change[hold.begin] += hold.bytes, change[hold.end] -= hold.bytes;
    int64_t held = 0, peak = live.empty() ? 0 : std::numeric_limits<int64_t>::min();
    for (size_t moment = 0; moment < live.size(); ++moment)
      peak = std::max(peak, live[moment] + (held += change[moment]));
    if (peak != plan.peakBytes[space])
      return "space " + std::to_string(space) + " holds " + std::to_string(peak) +
             " bytes, but the plan says " + std::to_string(plan.peakBytes[space]);
    fits &= peak <= problem.spaces[space].budget;
  }
  if (fits != plan.fits)
    return std::string("the plan ") + (fits ? "fits" : "does not fit") + ", but says otherwise";
  double busiest = 0;
  for (uint32_t resource = 0; resource < problem.resources.size(); ++resource) {
    double work = problem.resources[resource];
    for (const ResidencyWay &way : taken)
      for (const ResidencyCharge &charge : way.charges)
        work += charge.resource == resource ? charge.seconds : 0;
    if (!isClose(work, plan.work[resource]))
      return "resource " + std::to_string(resource) + " works " + std::to_string(work) +
             " s, but the plan says " + std::to_string(plan.work[resource]);
    busiest = std::max(busiest, work);
  }
  if (!isClose(busiest, plan.seconds))
    return "the busiest resource works " + std::to_string(busiest) + " s, but the plan says " +
           std::to_string(plan.seconds);
  if (fits && plan.bound > plan.seconds + 1e-9)
    return "the plan takes " + std::to_string(plan.seconds) + " s, less than its bound of " +
           std::to_string(plan.bound);
  return std::nullopt;
}

} // namespace ds::analysis
