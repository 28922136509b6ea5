//===- FlowNetwork.cpp - Maximum flow by levels and blocking flows ----------------===//
#include "FlowNetwork.h"

#include <algorithm>

namespace ds::analysis::detail {

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

} // namespace ds::analysis::detail
