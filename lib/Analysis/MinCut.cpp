//===- MinCut.cpp - The cheapest set of values that separates two sides ---------===//
//
// A cut: node v becomes an edge from 2v to 2v + 1 of its weight; all other edges are infinite, so that only
// nodes are cut.
//
// A closure: what is chosen lies on the source's side. A weight that is a gain is lost where its node does
// not, one that is a price is paid where it does, and an infinite edge leads from a node to what it implies.
//
//===----------------------------------------------------------------------------===//
#include "ds/Analysis/MinCut.h"

#include "FlowNetwork.h"

using namespace ds::analysis::detail;

std::vector<bool> ds::analysis::findMinimumCut(const CutProblem &problem) {
  uint32_t count = problem.nodes.size(), source = 2 * count, sink = source + 1;
  FlowNetwork network(2 * count + 2);
  for (uint32_t node = 0; node < count; ++node) {
    const CutNode &entry = problem.nodes[node];
    network.addEdge(2 * node, 2 * node + 1, entry.weight);
    if (entry.isSource)
      network.addEdge(source, 2 * node, kInfinite);
    if (entry.isSink)
      network.addEdge(2 * node + 1, sink, kInfinite);
  }
  for (auto [from, to] : problem.edges)
    network.addEdge(2 * from + 1, 2 * to, kInfinite);
  network.saturate(source, sink);
  std::vector<bool> reaches = network.reaching(sink), cut(count);
  for (uint32_t node = 0; node < count; ++node)
    cut[node] = reaches[2 * node + 1] && !reaches[2 * node];
  return cut;
}

std::vector<bool> ds::analysis::findMinimumClosure(const ClosureProblem &problem) {
  uint32_t count = problem.nodes.size(), source = count, sink = source + 1;
  FlowNetwork network(count + 2);
  for (uint32_t node = 0; node < count; ++node) {
    const ClosureNode &entry = problem.nodes[node];
    if (entry.isForced || entry.weight < 0)
      network.addEdge(source, node, entry.isForced ? kInfinite : -entry.weight);
    if (entry.weight > 0)
      network.addEdge(node, sink, entry.weight);
  }
  for (auto [node, implied] : problem.implications)
    network.addEdge(node, implied, kInfinite);
  network.saturate(source, sink);
  std::vector<bool> chosen = network.reaching(sink);
  chosen.resize(count);
  chosen.flip();
  return chosen;
}
