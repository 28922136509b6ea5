//===- MinCutTest.cpp - The cheapest set that separates two sides ---------------===//
#include "ds/Analysis/MinCut.h"

#include "gtest/gtest.h"

#include <optional>
#include <random>

using namespace ds::analysis;

namespace {

/// Total weight of `cut`, or -1 when a path from a source to a sink avoids it.
int64_t weightOf(const CutProblem &problem, const std::vector<bool> &cut) {
  std::vector<bool> reached(problem.nodes.size());
  for (size_t node = 0; node < cut.size(); ++node)
    reached[node] = problem.nodes[node].isSource && !cut[node];
  for (size_t round = 0; round < cut.size(); ++round)
    for (auto [from, to] : problem.edges)
      if (reached[from] && !cut[to])
        reached[to] = true;
  int64_t weight = 0;
  for (size_t node = 0; node < cut.size(); ++node) {
    if (reached[node] && problem.nodes[node].isSink)
      return -1;
    weight += cut[node] ? problem.nodes[node].weight : 0;
  }
  return weight;
}

TEST(MinCut, IsTheBestOfAllSubsets) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    CutProblem problem;
    unsigned count = 2 + random() % 8;
    for (unsigned node = 0; node < count; ++node)
      problem.nodes.push_back({int64_t(random() % 9), random() % 3 == 0, random() % 3 == 0});
    for (unsigned edge = 0; edge < 2 * count; ++edge) {
      uint32_t a = random() % count, b = random() % count;
      if (a != b)
        problem.edges.emplace_back(std::min(a, b), std::max(a, b));
    }
    int64_t best = INT64_MAX;
    for (unsigned subset = 0; subset < 1u << count; ++subset) {
      std::vector<bool> cut(count);
      for (unsigned node = 0; node < count; ++node)
        cut[node] = subset >> node & 1;
      int64_t weight = weightOf(problem, cut);
      if (weight >= 0)
        best = std::min(best, weight);
    }
    EXPECT_EQ(weightOf(problem, findMinimumCut(problem)), best) << "round " << round;
  }
}

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

TEST(MinCut, PrefersTheSinkSide) {
  CutProblem chain{{{4, true, false}, {4, false, false}, {4, false, true}}, {{0, 1}, {1, 2}}};
  EXPECT_EQ(findMinimumCut(chain), (std::vector<bool>{false, false, true}));
}

TEST(MinCut, CutsNothingWithoutSources) {
  CutProblem free{{{4, false, false}, {4, false, true}}, {{0, 1}}};
  EXPECT_EQ(findMinimumCut(free), (std::vector<bool>{false, false}));
}

TEST(MinCut, WalksDeepGraphs) {
  CutProblem deep;
  for (uint32_t node = 0; node < 20000; ++node) {
    deep.nodes.push_back({node == 777 ? 1 : 2, node == 0, node == 19999});
    if (node)
      deep.edges.emplace_back(node - 1, node);
  }
  EXPECT_TRUE(findMinimumCut(deep)[777]);
}

} // namespace
