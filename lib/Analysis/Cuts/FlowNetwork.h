//===- FlowNetwork.h - Maximum flow by levels and blocking flows ------------------===//
//
// Dinic's algorithm, iterative: paths are as long as models are deep. What finds cheapest closures.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_CUTS_FLOWNETWORK_H
#define DS_LIB_ANALYSIS_CUTS_FLOWNETWORK_H

#include <cstdint>
#include <limits>
#include <vector>

namespace ds::analysis::detail {

/// More than any sum of finite capacities may be.
inline constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

struct FlowEdge {
  uint32_t to;
  int64_t capacity; ///< what is left
};

/// Edge i and i ^ 1 are each other's reverse.
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

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_CUTS_FLOWNETWORK_H
