//===- ResidencyLoad.cpp - What choices take, and what a problem must satisfy -----===//
#include "ResidencySolver.h"

namespace ds::analysis::detail {

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

/// What is wrong with `way`, of a value of `problem`.
static std::optional<std::string> findFault(const ResidencyProblem &problem, const ResidencyWay &way) {
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
    if (value.isRead && value.homes.empty() && !value.recompute)
      return name + "is read, but cannot be had";
    for (uint32_t operand : value.operands)
      if (operand >= index)
        return name + "expects operands before it, but got value " + std::to_string(operand);
    for (const ResidencyWay &home : value.homes)
      if (std::optional<std::string> fault = findFault(problem, home))
        return name + *fault;
    if (auto fault = value.recompute ? findFault(problem, *value.recompute) : std::nullopt)
      return name + *fault;
  }
  return std::nullopt;
}

} // namespace ds::analysis::detail
