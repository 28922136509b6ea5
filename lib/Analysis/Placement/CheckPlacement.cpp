//===- CheckPlacement.cpp - What is wrong with a placement ---------------------===//
//
// Goes through the ops once, by the ways that were chosen alone, and adds up what they say.
//
//===---------------------------------------------------------------------------===//
#include "ds/Analysis/Placement/Placement.h"

#include <cmath>

namespace ds::analysis {

std::string findMistake(const PlacementProblem &problem, const PlacementSolution &solution) {
  if (solution.ways.size() != problem.ops.size() || solution.held.size() != problem.values.size())
    return "expects a way for each op and a form for each value";
  std::vector<uint32_t> made(problem.values.size(), 0);
  std::vector<bool> isThere(problem.values.size(), false);
  for (size_t value = 0; value < problem.values.size(); ++value) {
    isThere[value] = problem.values[value].isGiven;
    if (isThere[value] && solution.held[value] != problem.values[value].held)
      return "value " + std::to_string(value) + " is given in another form than it is held in";
  }
  double seconds = 0;
  for (size_t index = 0; index < problem.ops.size(); ++index) {
    const PlacedOp &op = problem.ops[index];
    if (solution.ways[index] >= op.ways.size())
      return "op " + std::to_string(index) + " has no way " + std::to_string(solution.ways[index]);
    const PlacedWay &way = op.ways[solution.ways[index]];
    seconds += way.seconds;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const uint32_t value = op.operands[k];
      if (!isThere[value])
        return "op " + std::to_string(index) + " reads value " + std::to_string(value) + " before it is made";
      const PlacedValue &described = problem.values[value];
      const uint32_t before = described.isGiven ? described.available : made[value];
      seconds += exchangeSeconds(problem, described, solution.held[value], way.operands[k], before);
      if (!described.isGiven && way.operands[k] != solution.held[value])
        made[value] |= uint32_t(1) << way.operands[k];
    }
    for (size_t k = 0; k < op.results.size(); ++k) {
      isThere[op.results[k]] = true;
      if (solution.held[op.results[k]] != way.results[k])
        return "value " + std::to_string(op.results[k]) + " is held otherwise than op " +
               std::to_string(index) + " makes it";
    }
  }
  if (!(std::abs(seconds - solution.seconds) <= 1e-9 * std::abs(seconds)))
    return "the ways take " + std::to_string(seconds) + " s, and not " + std::to_string(solution.seconds);
  return {};
}

} // namespace ds::analysis
