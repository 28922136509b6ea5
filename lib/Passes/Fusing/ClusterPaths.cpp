//===- ClusterPaths.cpp - What lies between two fusion clusters -------------------===//
#include "ClusterBuilder.h"

using namespace mlir;
using namespace mlir::ds;

void ClusterBuilder::noteSpan(const Group &group) {
  for (unsigned at = group.first + 1; at <= group.last; ++at)
    spannedFrom[at] = std::min(spannedFrom[at], group.first);
}

/// What reads `from` comes behind it. But it may be part of a cluster that has members before, and those of
/// another again: what reads one of these waits for `from` as well, wherever it stands.
unsigned ClusterBuilder::findHorizon(unsigned from) const {
  unsigned horizon = clusters[from].first;
  while (spannedFrom[horizon] < horizon)
    horizon = spannedFrom[horizon];
  return horizon;
}

bool ClusterBuilder::reachesThroughOthers(unsigned from, unsigned to) {
  unsigned horizon = findHorizon(from);
  ++search;
  SmallVector<unsigned, 32> pending;
  auto add = [&](unsigned op) {
    if (op != kNone && op >= horizon && opSeen[op] != search) {
      opSeen[op] = search;
      pending.push_back(op);
    }
  };
  // Start from what `to` reads outside both; a direct edge is no obstacle. A free op that something else
  // reads in memory is read from there by all, and waits for all that its cluster waits for.
  for (unsigned member : clusters[to].members)
    for (unsigned source : facts[member].sources)
      if (facts[source].cluster != from && facts[source].cluster != to)
        add(source);
  while (!pending.empty()) {
    unsigned op = pending.pop_back_val(), cluster = facts[op].cluster;
    if (cluster == from)
      return true;
    if (cluster == kNone) {
      llvm::for_each(facts[op].producers, add);
    } else if (cluster != to && clusterSeen[cluster] != search) {
      clusterSeen[cluster] = search;
      for (unsigned member : clusters[cluster].members)
        llvm::for_each(facts[member].producers, add);
    }
  }
  return false;
}

bool ClusterBuilder::hasPathBetween(unsigned a, unsigned b) {
  return reachesThroughOthers(a, b) || reachesThroughOthers(b, a);
}
