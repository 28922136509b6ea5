//===- MinClosure.cpp - The cheapest set that has all that it implies -----------===//
//
// What is chosen lies on the source's side of a cut. A weight that is a gain is lost where its node does not,
// one that is a price is paid where it does, and an infinite edge leads from a node to what it implies.
//
//===----------------------------------------------------------------------------===//
#include "ds/Analysis/Cuts/MinClosure.h"

#include "FlowNetwork.h"

using namespace ds::analysis::detail;

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
