//===- ClusterBuilder.h - The walk that finds fusion clusters ---------------------===//
#ifndef DS_LIB_PASSES_FUSING_CLUSTERBUILDER_H
#define DS_LIB_PASSES_FUSING_CLUSTERBUILDER_H

#include "FusionClusters.h"

namespace mlir::ds {

/// No position: an argument of the block, or an op of another; no cluster.
inline constexpr unsigned kNone = UINT_MAX;

/// A value that an op reads, seen through the free ops between: who makes it, and the broadcasts on the way.
struct Leaf {
  Value value;
  unsigned producer; ///< its position
  SmallVector<BroadcastOp, 1> path;
};

/// What the walk asks of an op again and again: looking interfaces up would take most of its time.
struct OpFacts {
  bool candidate = false, free = false, recomputed = false, forward = false;
  bool copied = false; ///< a free op that belongs to no cluster: only candidates read it, and each copies it
  bool early = false;  ///< gives a number that follows from numbers which are there from the start
  unsigned gradients = 0; ///< ops of backward in the block up to it
  unsigned cluster = kNone;
  SmallVector<unsigned, 2> producers; ///< of its operands, as positions in this block
  SmallVector<unsigned, 2> sources;   ///< the same, where copied ops are seen through: whom it waits for
  SmallVector<Leaf, 2> leaves;        ///< of candidates
};

/// The walk's state: a unit is a cluster, or one op outside all clusters. Ops are known by their position.
class ClusterBuilder {
public:
  /// `copies` holds, per column reduction, the private ops that only it may have.
  using Copies = DenseMap<Operation *, SmallVector<Operation *>>;
  ClusterBuilder(Block &block, const OpenRegions &regions, const Copies &copies);

  SmallVector<FusionCluster> run();

private:
  /// A cluster while it grows; those merged away have no members.
  struct Group {
    FusionDomain domain;
    SmallVector<unsigned> members;
    unsigned first = kNone, last = 0; ///< the least and the greatest of them
    bool early = false;               ///< whether they are; see isEarly
    bool forward = false;             ///< whether they are
    bool settled = false;             ///< a region that was there before
  };

  unsigned positionOf(Operation *op) const {
    auto it = position.find(op);
    return it == position.end() ? kNone : it->second;
  }
  unsigned clusterOf(Operation *op) const {
    unsigned at = positionOf(op);
    return at == kNone ? kNone : facts[at].cluster;
  }
  void learnFacts(Operation *op, const FreeOps &freeOps);
  bool isEarly(Operation *op) const;
  /// Adds what `operand` is made of to `leaves`, looking through free ops.
  void collectLeaves(Value operand, SmallVectorImpl<Leaf> &leaves) const;
  /// Puts `op` and its private copies into a cluster of their own.
  unsigned startCluster(unsigned op);
  /// Makes clusters of the ops that are together in `regions`.
  void settle(const OpenRegions &regions);
  /// Puts `op` into `group`, which is cluster `id`.
  void add(Group &group, unsigned id, unsigned op);
  /// Gives what is computed again for one region alone to that region.
  void serveReaders();
  /// The cluster of all that read `op`, be it through copies; kNone where they are in several, or in none.
  unsigned findReader(unsigned op) const;
  /// Notes what `group` spans now. It only grows, and another that joins it spans no more than both do then.
  void noteSpan(const Group &group);
  /// The position before which nothing can lead to the cluster `from`.
  unsigned findHorizon(unsigned from) const;
  /// Lets `op` (or a whole cluster) join `candidate` where domains agree, broadcasts fit and the union is
  /// convex.
  bool tryJoin(unsigned cluster, unsigned candidate);
  /// Clusters that produce what the ops of `cluster` read, looking through free ops; also those that read the
  /// same widened values, and for column reductions those that read the same.
  SmallVector<unsigned> findCandidates(unsigned cluster);
  /// True when a path from `from` to `to` runs through a unit outside both, in either direction.
  bool hasPathBetween(unsigned a, unsigned b);
  bool reachesThroughOthers(unsigned from, unsigned to);
  /// True when each broadcast in `cluster` of a value of `producer` repeats a row value along its row.
  bool broadcastsFit(unsigned cluster, unsigned producer, const FusionDomain &united);

  const Copies &copies;
  SmallVector<Operation *> ops; ///< by position
  DenseMap<Operation *, unsigned> position;
  std::vector<OpFacts> facts; ///< by position
  std::vector<Group> clusters;
  /// Per position, the first of all clusters that have members on both sides of it; itself where none has.
  std::vector<unsigned> spannedFrom;
  // Marks of the search for paths, valid where they equal `search`.
  unsigned search = 0;
  std::vector<unsigned> opSeen, clusterSeen;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_FUSING_CLUSTERBUILDER_H
