//===- ResidencyOracle.h - The best plan of a small residency problem, and problems --===//
//
// Problem: how far are plans from the best? Bounds of the solver say so only from one side. Idea: branch and
// bound over the ways of each value, operands first. What the values that are left take at least is known
// from prices on bytes and seconds that a search of its own has found (subgradients, links between values
// left out), so that most branches end early. It shares no code with the solver, and starts from the seconds
// of a plan that it is to beat: it either finds a better choice, or proves that none is.
//
// Example: 3 layers of 7 values, 12 gathers and a loss in up to 4 pieces have some 10^14 choices; that none
// is better by a ten-thousandth is proved in about 10^5 steps.
//
// The price: problems of some 40 values; with many more the search is cut off, and says so.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_ANALYSIS_RESIDENCYORACLE_H
#define DS_UNITTESTS_ANALYSIS_RESIDENCYORACLE_H

#include "ds/Analysis/Residency/Residency.h"

#include <random>

namespace ds::analysis {

/// What is known of the best choice.
struct ResidencyBest {
  std::optional<double> seconds; ///< of the busiest resource; none where nothing fits, or none is better
  std::vector<int32_t> ways;     ///< of that choice
  bool isProved = false;         ///< the search has ended by itself
  int64_t steps = 0;             ///< of the search
};

/// The best choice that takes less than `above` seconds but for a share of `near` of it; none: any.
ResidencyBest findBestResidency(const ResidencyProblem &problem, std::optional<double> above,
                                double near = 1e-4, int64_t mostSteps = 20'000'000);

/// What a step like those of transformers offers.
struct StepShape {
  uint32_t layers = 2;
  bool usesHost = false;      ///< activations may go to the host
  bool gathersWeights = true; ///< weights are gathered for each use, or kept
  bool losesInPieces = true;  ///< the loss may be made in pieces
  bool hasWorkspaces = true;  ///< gradients of attention have workspaces
  double free = 0.5;          ///< share of what keeping all takes that the budget leaves
};

/// A step of `shape`: forward, then backward in reverse, sizes and seconds at random but the same in each
/// layer, resources as ResidencyModel.h has them.
ResidencyProblem makeStep(const StepShape &shape, std::mt19937 &random);

/// Values that share operands at random, with few bytes for what they cost, in two spaces that both bind.
ResidencyProblem makeTangle(std::mt19937 &random);

/// Values whose bytes lie near their seconds in size, so that to fill a budget well is a search.
ResidencyProblem makeKnapsack(std::mt19937 &random);

} // namespace ds::analysis

#endif // DS_UNITTESTS_ANALYSIS_RESIDENCYORACLE_H
