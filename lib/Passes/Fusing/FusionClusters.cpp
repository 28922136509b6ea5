//===- FusionClusters.cpp - Which ops one generated kernel computes -------------===//
//
// See FusionClusters.h for the problem and the idea.
//
//===---------------------------------------------------------------------------===//
#include "FusionClusters.h"
#include "Support/Exchanges.h"

#include "ds/Dialect/Work.h"

#include "ds/Dialect/Emitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

/// A column reduction copies at most this many cheap ops; beyond, reading the value back is cheaper.
static constexpr size_t kMaxCopiedOps = 12;
/// A kernel has at most this many ops, however long the model is: a chain of cheap ones, or updates of small
/// parameters, which meet where their norms are added up, some 30 ops a layer. Code generation goes from ops
/// to their operands by recursion, and takes more than proportional time for long blocks.
static constexpr size_t kMaxClusterOps = 1024;

namespace {
/// No position: an argument of the block, or an op of another; no cluster.
constexpr unsigned kNone = UINT_MAX;

/// A value that an op reads, seen through the free ops between: who makes it, and the broadcasts on the way.
struct Leaf {
  Value value;
  unsigned producer; ///< its position
  SmallVector<BroadcastOp, 1> path;
};

/// What the walk asks of an op again and again: looking interfaces up would take most of its time.
struct OpFacts {
  bool candidate = false, free = false, recomputed = false;
  bool copied = false; ///< a free op that belongs to no cluster: only candidates read it, and each copies it
  bool early = false;  ///< gives a number that follows from numbers which are there from the start
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
  ClusterBuilder(Block &block, const Copies &copies);

  SmallVector<FusionCluster> run();

private:
  /// A cluster while it grows; those merged away have no members.
  struct Group {
    FusionDomain domain;
    SmallVector<unsigned> members;
    unsigned first = kNone, last = 0; ///< the least and the greatest of them
    bool early = false;               ///< whether they are; see isEarly
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
} // namespace

ClusterBuilder::ClusterBuilder(Block &block, const Copies &copies) : copies(copies) {
  for (Operation &op : block) {
    position[&op] = ops.size();
    ops.push_back(&op);
  }
  facts.resize(ops.size());
  opSeen.resize(ops.size());
  spannedFrom.resize(ops.size());
  std::iota(spannedFrom.begin(), spannedFrom.end(), 0);
  const FreeOps freeOps(block);
  for (unsigned at = 0; at < ops.size(); ++at)
    facts[at].candidate = isFusionCandidate(ops[at]);
  unsigned meeting = kNone; // the last one with other stages
  for (unsigned at = 0; at < ops.size(); ++at) {
    learnFacts(ops[at], freeOps);
    if (!meetsStages(ops[at]))
      continue;
    // What is received may follow from what was sent: no region has a part on either side of both.
    if (meeting != kNone)
      facts[at].producers.push_back(meeting), facts[at].sources.push_back(meeting);
    meeting = at;
  }
}

/// Requires the facts of all ops before `op`, and of all whether they are candidates.
void ClusterBuilder::learnFacts(Operation *op, const FreeOps &freeOps) {
  OpFacts &fact = facts[positionOf(op)];
  for (Value operand : op->getOperands())
    if (Operation *producer = operand.getDefiningOp())
      if (unsigned at = positionOf(producer); at != kNone) {
        fact.producers.push_back(at);
        if (facts[at].copied)
          llvm::append_range(fact.sources, facts[at].sources);
        else
          fact.sources.push_back(at);
      }
  fact.recomputed = getWork(op) == Work::Recompute;
  if (!fact.candidate)
    return;
  fact.free = freeOps.contains(op);
  fact.early = isa<func::FuncOp>(op->getParentOp()) && isEarly(op);
  fact.copied = fact.free && llvm::all_of(op->getUsers(), [&](Operation *user) {
                  unsigned at = positionOf(user);
                  return at == kNone ? isFusionCandidate(user) : facts[at].candidate;
                });
  for (Value operand : op->getOperands())
    collectLeaves(operand, fact.leaves);
}

/// Whether `op` gives a number that follows from scalars which are there when the function begins, such as
/// the step's learning rate. All updates wait for it: in one kernel with the norm of a small gradient it
/// would be known when backward has made that, and larger gradients would be kept until then.
bool ClusterBuilder::isEarly(Operation *op) const {
  auto isScalar = [](Value value) { return tensorType(value).getRank() == 0; };
  auto isKnown = [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    if (!producer)
      return isScalar(operand);
    const unsigned at = positionOf(producer);
    return at != kNone && (facts[at].early || producer->hasTrait<OpTrait::ConstantLike>());
  };
  return isScalar(op->getResult(0)) && llvm::all_of(op->getOperands(), isKnown);
}

void ClusterBuilder::collectLeaves(Value operand, SmallVectorImpl<Leaf> &leaves) const {
  Leaf leaf{operand, kNone, {}};
  while (Operation *producer = leaf.value.getDefiningOp()) {
    leaf.producer = positionOf(producer);
    if (leaf.producer == kNone || !facts[leaf.producer].free)
      break;
    auto broadcast = dyn_cast<BroadcastOp>(producer);
    if (broadcast)
      leaf.path.push_back(broadcast);
    else if (!widens(producer))
      return; // made of constants alone
    leaf = {producer->getOperand(0), kNone, std::move(leaf.path)};
  }
  leaves.push_back(std::move(leaf));
}

unsigned ClusterBuilder::startCluster(unsigned op) {
  unsigned id = clusters.size();
  Group group;
  group.domain = ownDomain(ops[op]);
  group.early = facts[op].early;
  for (Operation *copy : copies.lookup(ops[op]))
    group.members.push_back(positionOf(copy));
  group.members.push_back(op);
  for (unsigned member : group.members) {
    facts[member].cluster = id;
    group.first = std::min(group.first, member), group.last = std::max(group.last, member);
  }
  noteSpan(group);
  clusters.push_back(std::move(group));
  clusterSeen.push_back(0);
  return id;
}

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

bool ClusterBuilder::broadcastsFit(unsigned cluster, unsigned producer, const FusionDomain &united) {
  ArrayRef<int64_t> lead = ArrayRef(united.shape).take_front(united.split);
  auto fits = [&](const Leaf &leaf) {
    if (leaf.path.empty() || leaf.producer == kNone || facts[leaf.producer].cluster != producer)
      return true;
    BroadcastOp repeat = leaf.path[0];
    return leaf.path.size() == 1 && united.kind == FusionDomain::Kind::Rows &&
           tensorType(leaf.value).getShape() == lead &&
           llvm::equal(repeat.getDims(), llvm::seq<int64_t>(0, united.split)) &&
           tensorType(repeat.getResult()).getShape() == ArrayRef(united.shape);
  };
  return llvm::all_of(clusters[cluster].members,
                      [&](unsigned op) { return llvm::all_of(facts[op].leaves, fits); });
}

bool ClusterBuilder::tryJoin(unsigned cluster, unsigned candidate) {
  Group &group = clusters[cluster], &other = clusters[candidate];
  if (cluster == candidate || other.members.empty() || group.early != other.early ||
      group.members.size() + other.members.size() > kMaxClusterOps)
    return false;
  std::optional<FusionDomain> united = unite(group.domain, other.domain);
  if (!united || !broadcastsFit(cluster, candidate, *united) || !broadcastsFit(candidate, cluster, *united) ||
      hasPathBetween(cluster, candidate))
    return false;
  for (unsigned op : other.members)
    facts[op].cluster = cluster;
  group.members.append(other.members);
  group.first = std::min(group.first, other.first), group.last = std::max(group.last, other.last);
  noteSpan(group);
  group.domain = *united;
  other.members.clear();
  return true;
}

SmallVector<unsigned> ClusterBuilder::findCandidates(unsigned cluster) {
  llvm::SmallSetVector<unsigned, 8> found;
  bool isColumns = clusters[cluster].domain.kind == FusionDomain::Kind::Columns;
  // What is computed again must not go back to where it was computed first: it would be kept after all.
  auto belongsTo = [&](unsigned reader, unsigned producer) {
    return !facts[reader].recomputed || facts[producer].recomputed;
  };
  for (unsigned op : clusters[cluster].members)
    for (const Leaf &leaf : facts[op].leaves) {
      if (leaf.producer != kNone && facts[leaf.producer].cluster != kNone && belongsTo(op, leaf.producer))
        found.insert(facts[leaf.producer].cluster);
      if (!isColumns)
        continue;
      for (Operation *user : leaf.value.getUsers())
        if (unsigned reader = clusterOf(user);
            reader != kNone && clusters[reader].domain.kind == FusionDomain::Kind::Columns)
          found.insert(reader);
    }
  for (unsigned op : clusters[cluster].members)
    for (Value operand : ops[op]->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && widens(producer))
        for (Operation *reader : producer->getUsers())
          if (unsigned at = positionOf(reader);
              at != kNone && facts[at].cluster != kNone && facts[at].recomputed == facts[op].recomputed)
            found.insert(facts[at].cluster);
  return found.takeVector();
}

/// Copies the cheap elementwise ops that feed `reduce`, so that a column kernel needs no full-size
/// intermediate. Returns the copies, in order. A value that someone else needs in memory anyway is read from
/// there.
static SmallVector<Operation *> copyCheapProducers(ReduceOp reduce, const FreeOps &freeOps) {
  SetVector<Operation *> slice;
  SmallVector<Value> pending = {reduce.getInput()};
  auto isCheap = [&](Operation *op) {
    if (!op || fusionKind(op) != FusionKind::Elementwise || freeOps.contains(op))
      return false;
    return llvm::all_of(op->getUsers(), [](Operation *user) { return isFusionCandidate(user); });
  };
  while (!pending.empty() && slice.size() < kMaxCopiedOps) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (isCheap(op) && slice.insert(op))
      llvm::append_range(pending, op->getOperands());
  }
  SmallVector<Operation *> ordered = slice.takeVector(), copies;
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(reduce);
  IRMapping mapping;
  for (Operation *op : ordered)
    copies.push_back(builder.clone(*op, mapping));
  reduce.getInputMutable().assign(mapping.lookupOrDefault(reduce.getInput()));
  return copies;
}

SmallVector<FusionCluster> ClusterBuilder::run() {
  DenseSet<Operation *> isCopy;
  for (auto &[reduce, members] : copies)
    isCopy.insert(members.begin(), members.end());
  for (unsigned at = 0; at < ops.size(); ++at) {
    if (!facts[at].candidate || facts[at].copied || isCopy.contains(ops[at]))
      continue;
    unsigned cluster = startCluster(at);
    for (unsigned candidate : findCandidates(cluster))
      tryJoin(cluster, candidate);
  }
  SmallVector<FusionCluster> result;
  for (Group &group : clusters)
    if (!group.members.empty()) {
      llvm::sort(group.members);
      result.push_back({std::move(group.domain),
                        llvm::map_to_vector(group.members, [&](unsigned op) { return ops[op]; })});
    }
  return result;
}

SmallVector<FusionCluster> mlir::ds::findFusionClusters(Block &block) {
  ClusterBuilder::Copies copies;
  const FreeOps freeOps(block);
  for (ReduceOp reduce : llvm::make_early_inc_range(block.getOps<ReduceOp>()))
    if (isFusionCandidate(reduce) && ownDomain(reduce).kind == FusionDomain::Kind::Columns)
      copies[reduce] = copyCheapProducers(reduce, freeOps);
  // What was copied for every user is dead now.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isFusionCandidate(&op) && op.use_empty())
      op.erase();
  return ClusterBuilder(block, copies).run();
}
