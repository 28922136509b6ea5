//===- MinClosureTest.cpp - The cheapest set that has all that it implies -------===//
#include "ds/Analysis/Cuts/MinClosure.h"

#include "gtest/gtest.h"

#include <optional>
#include <random>

using namespace ds::analysis;

namespace {

/// Weight of the nodes of `subset`, or none where it lacks a forced or implied node.
std::optional<int64_t> weightOf(const ClosureProblem &problem, unsigned subset) {
  int64_t weight = 0;
  for (size_t node = 0; node < problem.nodes.size(); ++node)
    if (subset >> node & 1)
      weight += problem.nodes[node].weight;
    else if (problem.nodes[node].isForced)
      return std::nullopt;
  for (auto [node, implied] : problem.implications)
    if ((subset >> node & 1) && !(subset >> implied & 1))
      return std::nullopt;
  return weight;
}

TEST(MinClosure, IsTheBestOfAllSubsets) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    ClosureProblem problem;
    unsigned count = 2 + random() % 8;
    for (unsigned node = 0; node < count; ++node)
      problem.nodes.push_back({int64_t(random() % 19) - 9, random() % 5 == 0});
    for (unsigned edge = 0; edge < count; ++edge)
      problem.implications.emplace_back(random() % count, random() % count);
    std::optional<int64_t> best;
    for (unsigned subset = 0; subset < 1u << count; ++subset)
      if (std::optional<int64_t> weight = weightOf(problem, subset); weight && (!best || *weight < *best))
        best = weight;
    unsigned chosen = 0;
    std::vector<bool> closure = findMinimumClosure(problem);
    for (unsigned node = 0; node < count; ++node)
      chosen |= unsigned(closure[node]) << node;
    EXPECT_EQ(weightOf(problem, chosen), best) << "round " << round;
  }
}

/// A chain in which each node implies the next: the gain at its head pays for the last, or for nothing.
TEST(MinClosure, WalksDeepGraphs) {
  constexpr uint32_t kDepth = 20000;
  for (const int64_t gain : {3, 1}) {
    ClosureProblem deep;
    for (uint32_t node = 0; node < kDepth; ++node) {
      deep.nodes.push_back({node == 0 ? -gain : node + 1 == kDepth ? 2 : 0, false});
      if (node)
        deep.implications.emplace_back(node - 1, node);
    }
    EXPECT_EQ(findMinimumClosure(deep), std::vector<bool>(kDepth, gain > 2)) << gain;
  }
}

} // namespace
