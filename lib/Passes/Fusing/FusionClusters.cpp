//===- FusionClusters.cpp - Which ops one generated kernel computes -------------===//
//
// See FusionClusters.h for the problem and the idea.
//
//===---------------------------------------------------------------------------===//
#include "FusionClusters.h"

#include "ClusterBuilder.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// A column reduction copies at most this many cheap ops; beyond, reading the value back is cheaper.
static constexpr size_t kMaxCopiedOps = 12;
/// A kernel has at most this many ops, however long the model is: a chain of cheap ones, or updates of small
/// parameters, which meet where their norms are added up, some 30 ops a layer. Code generation goes from ops
/// to their operands by recursion, and takes more than proportional time for long blocks.
static constexpr size_t kMaxClusterOps = 1024;

unsigned ClusterBuilder::findReader(unsigned op) const {
  unsigned reader = kNone;
  SmallVector<unsigned> pending = {op};
  while (!pending.empty())
    for (Operation *user : ops[pending.pop_back_val()]->getUsers()) {
      const unsigned at = positionOf(user);
      if (at == kNone)
        return kNone;
      if (facts[at].copied) {
        pending.push_back(at);
        continue;
      }
      if (facts[at].cluster == kNone || (reader != kNone && reader != facts[at].cluster))
        return kNone;
      reader = facts[at].cluster;
    }
  return reader;
}

/// From the last op to the first, so that of a chain the readers are there. Where it could be with what makes
/// its operands as well, it would be a value in memory between the two.
void ClusterBuilder::serveReaders() {
  for (unsigned at = ops.size(); at-- > 0;) {
    const OpFacts &fact = facts[at];
    if (!fact.candidate || fact.copied || !fact.recomputed || fact.cluster != kNone ||
        fusionKind(ops[at]) == FusionKind::Reduction)
      continue;
    const unsigned reader = findReader(at);
    if (reader == kNone || !clusters[reader].settled)
      continue;
    const unsigned own = startCluster(at);
    const FusionDomain &domain = clusters[reader].domain;
    if (domain.kind == FusionDomain::Kind::Columns && clusters[own].domain.shape == domain.shape)
      clusters[own].domain = domain; // as what is copied for a sum of columns: it does not leave the region
    tryJoin(reader, own);
  }
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
      group.forward != other.forward || (group.settled && other.settled) ||
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
  group.settled |= other.settled;
  other.members.clear();
  return true;
}

SmallVector<unsigned> ClusterBuilder::findCandidates(unsigned cluster) {
  llvm::SmallSetVector<unsigned, 8> found;
  bool isColumns = clusters[cluster].domain.kind == FusionDomain::Kind::Columns;
  // What is computed again must not go back to where it was computed first, or for another reader: it would
  // be kept after all.
  auto isAlike = [&](unsigned a, unsigned b) {
    return facts[a].recomputed == facts[b].recomputed &&
           (!facts[a].recomputed || facts[a].gradients == facts[b].gradients);
  };
  auto belongsTo = [&](unsigned reader, unsigned producer) {
    return !facts[reader].recomputed || isAlike(reader, producer);
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
          if (unsigned at = positionOf(reader); at != kNone && facts[at].cluster != kNone && isAlike(at, op))
            found.insert(facts[at].cluster);
  return found.takeVector();
}

/// Copies the cheap elementwise ops that feed `reduce`, so that a column kernel needs no full-size
/// intermediate. Returns the copies, in order. A value that someone else needs in memory anyway is read from
/// there, and so is what forward has made.
static SmallVector<Operation *> copyCheapProducers(ReduceOp reduce, const FreeOps &freeOps) {
  SetVector<Operation *> slice;
  SmallVector<Value> pending = {reduce.getInput()};
  auto isCheap = [&](Operation *op) {
    if (!op || fusionKind(op) != FusionKind::Elementwise || freeOps.contains(op) ||
        isForward(op) != isForward(reduce))
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
  serveReaders();
  for (unsigned at = 0; at < ops.size(); ++at) {
    if (!facts[at].candidate || facts[at].copied || isCopy.contains(ops[at]))
      continue;
    const bool isKnown = facts[at].cluster != kNone;
    if (isKnown && clusters[facts[at].cluster].first != at)
      continue;
    unsigned cluster = isKnown ? facts[at].cluster : startCluster(at);
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

SmallVector<FusionCluster> mlir::ds::findFusionClusters(Block &block, const OpenRegions &regions) {
  ClusterBuilder::Copies copies;
  const FreeOps freeOps(block);
  for (ReduceOp reduce : llvm::make_early_inc_range(block.getOps<ReduceOp>()))
    if (isFusionCandidate(reduce) && !regions.find(reduce) &&
        ownDomain(reduce).kind == FusionDomain::Kind::Columns)
      copies[reduce] = copyCheapProducers(reduce, freeOps);
  // What was copied for every user is dead now.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isFusionCandidate(&op) && op.use_empty())
      op.erase();
  return ClusterBuilder(block, regions, copies).run();
}
