//===- MinCut.h - The cheapest set of values that separates two sides -----------===//
//
// A directed graph whose nodes have weights; some nodes are sources, some sinks. Finds the set of nodes of
// least total weight that lies on every path from a source to a sink (Dinic's algorithm on the graph with
// split nodes). Of several such sets it gives the one nearest to the sinks. The same flow finds the cheapest
// set of nodes that has all that its members imply, a closure (Picard 1976).
//
//===----------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_MINCUT_H
#define DS_ANALYSIS_MINCUT_H

#include <cstdint>
#include <utility>
#include <vector>

namespace ds::analysis {

struct CutNode {
  int64_t weight = 0; ///< not negative
  bool isSource = false;
  bool isSink = false;
};

struct CutProblem {
  std::vector<CutNode> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> edges; ///< from, to
};

/// For each node whether it belongs to the cut.
std::vector<bool> findMinimumCut(const CutProblem &problem);

struct ClosureNode {
  int64_t weight = 0; ///< what choosing it costs; negative: what it gains
  bool isForced = false;
};

/// Nodes of which some are to be chosen, with all that they imply.
struct ClosureProblem {
  std::vector<ClosureNode> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> implications; ///< a node, and one that must be chosen with it
};

/// For each node whether it belongs to the set of least weight that has every forced node and is closed; of
/// equal ones the largest.
std::vector<bool> findMinimumClosure(const ClosureProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_MINCUT_H
