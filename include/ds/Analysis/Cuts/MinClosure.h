//===- MinClosure.h - The cheapest set that has all that it implies -------------===//
//
// A directed graph whose nodes have weights, prices or gains. Finds the set of nodes of least total weight
// that has all that its members imply, a closure (Picard 1976), by a minimum cut (Dinic's algorithm).
//
//===----------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_CUTS_MINCLOSURE_H
#define DS_ANALYSIS_CUTS_MINCLOSURE_H

#include <cstdint>
#include <utility>
#include <vector>

namespace ds::analysis {

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

#endif // DS_ANALYSIS_CUTS_MINCLOSURE_H
