//===- ClusterFacts.cpp - What the walk knows of a block before it begins ---------===//
#include "ClusterBuilder.h"

#include "Support/Exchanges.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

ClusterBuilder::ClusterBuilder(Block &block, const OpenRegions &regions, const Copies &copies)
    : copies(copies) {
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
  settle(regions);
}

void ClusterBuilder::add(Group &group, unsigned id, unsigned op) {
  facts[op].cluster = id;
  group.members.push_back(op);
  group.first = std::min(group.first, op), group.last = std::max(group.last, op);
}

/// The domain of a region that has `members`: that of its reductions, where it has some. Of a sum of columns
/// the ops before it have none of their own.
static FusionDomain settledDomain(ArrayRef<Operation *> members) {
  auto reduction = llvm::find_if(members, llvm::IsaPred<ReduceOp>);
  FusionDomain domain = ownDomain(reduction == members.end() ? members.front() : *reduction);
  if (domain.kind != FusionDomain::Kind::Columns)
    for (Operation *op : members)
      if (std::optional<FusionDomain> united = unite(domain, ownDomain(op)))
        domain = *united;
  return domain;
}

/// What each reader has its own copy of belongs to no region.
void ClusterBuilder::settle(const OpenRegions &regions) {
  clusters.resize(regions.size());
  clusterSeen.resize(regions.size());
  for (unsigned at = 0; at < ops.size(); ++at) {
    std::optional<unsigned> region = regions.find(ops[at]);
    if (!region || !facts[at].candidate || facts[at].copied)
      continue;
    Group &group = clusters[*region];
    group.early = facts[at].early && (group.members.empty() || group.early);
    group.forward |= facts[at].forward;
    group.settled = true;
    add(group, *region, at);
  }
  for (Group &group : clusters)
    if (!group.members.empty()) {
      noteSpan(group);
      group.domain = settledDomain(llvm::map_to_vector(group.members, [&](unsigned op) { return ops[op]; }));
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
  const unsigned at = positionOf(op);
  const std::optional<Work> work = getWork(op);
  fact.recomputed = work == Work::Recompute;
  fact.gradients = (at > 0 ? facts[at - 1].gradients : 0) + (work == Work::Backward);
  fact.forward = isForward(op);
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
  group.forward = facts[op].forward;
  for (Operation *copy : copies.lookup(ops[op]))
    add(group, id, positionOf(copy));
  add(group, id, op);
  noteSpan(group);
  clusters.push_back(std::move(group));
  clusterSeen.push_back(0);
  return id;
}
