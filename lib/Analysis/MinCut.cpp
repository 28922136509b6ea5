//===- MinCut.cpp - The cheapest set of values that separates two sides ---------===//
//
// Node v becomes an edge from 2v to 2v + 1 of its weight; all other edges are infinite, so that only nodes
// are cut.
//
//===----------------------------------------------------------------------------===//
#include "ds/Analysis/MinCut.h"

#include <algorithm>
#include <limits>

namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

struct FlowEdge {
  uint32_t to;
  int64_t capacity; ///< what is left
};

/// Maximum flow by levels and blocking flows. Edge i and i ^ 1 are each other's reverse.
class FlowNetwork {
public:
  explicit FlowNetwork(uint32_t numNodes) : out(numNodes), level(numNodes), next(numNodes) {}

  void addEdge(uint32_t from, uint32_t to, int64_t capacity) {
    out[from].push_back(edges.size());
    edges.push_back({to, capacity});
    out[to].push_back(edges.size());
    edges.push_back({from, 0});
  }
  void saturate(uint32_t source, uint32_t sink);
  /// Nodes from which the sink can still be reached.
  std::vector<bool> reaching(uint32_t sink) const;

private:
  bool findLevels(uint32_t source, uint32_t sink);
  int64_t augment(uint32_t source, uint32_t sink);

  std::vector<FlowEdge> edges;
  std::vector<std::vector<uint32_t>> out;
  std::vector<int32_t> level;
  std::vector<uint32_t> next; ///< first edge of a node that is not known to be useless
};

bool FlowNetwork::findLevels(uint32_t source, uint32_t sink) {
  std::fill(level.begin(), level.end(), -1);
  std::vector<uint32_t> queue = {source};
  level[source] = 0;
  for (size_t head = 0; head < queue.size(); ++head)
    for (uint32_t index : out[queue[head]]) {
      const FlowEdge &edge = edges[index];
      if (edge.capacity == 0 || level[edge.to] >= 0)
        continue;
      level[edge.to] = level[queue[head]] + 1;
      queue.push_back(edge.to);
    }
  return level[sink] >= 0;
}

/// Sends flow along one shortest path and returns how much; 0 when there is none. Iterative: paths are as
/// long as models are deep.
int64_t FlowNetwork::augment(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path;
  uint32_t node = source;
  while (node != sink) {
    uint32_t &position = next[node];
    while (position < out[node].size()) {
      const FlowEdge &edge = edges[out[node][position]];
      if (edge.capacity > 0 && level[edge.to] == level[node] + 1)
        break;
      ++position;
    }
    if (position < out[node].size()) {
      path.push_back(out[node][position]);
      node = edges[path.back()].to;
      continue;
    }
    if (path.empty())
      return 0;
    node = edges[path.back() ^ 1].to; // a dead end: one step back, past the edge that led here
    path.pop_back();
    ++next[node];
  }
  int64_t flow = kInfinite;
  for (uint32_t index : path)
    flow = std::min(flow, edges[index].capacity);
  for (uint32_t index : path) {
    edges[index].capacity -= flow;
    edges[index ^ 1].capacity += flow;
  }
  return flow;
}

void FlowNetwork::saturate(uint32_t source, uint32_t sink) {
  while (findLevels(source, sink)) {
    std::fill(next.begin(), next.end(), 0);
    while (augment(source, sink) > 0)
      continue;
  }
}

std::vector<bool> FlowNetwork::reaching(uint32_t sink) const {
  std::vector<bool> reaches(out.size());
  std::vector<uint32_t> queue = {sink};
  reaches[sink] = true;
  for (size_t head = 0; head < queue.size(); ++head)
    for (uint32_t index : out[queue[head]]) {
      uint32_t from = edges[index].to;
      if (edges[index ^ 1].capacity > 0 && !reaches[from]) {
        reaches[from] = true;
        queue.push_back(from);
      }
    }
  return reaches;
}

} // namespace

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
