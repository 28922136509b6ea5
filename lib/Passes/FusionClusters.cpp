//===- FusionClusters.cpp - Which ops one generated kernel computes -------------===//
//
// See FusionClusters.h for the problem and the idea.
//
//===---------------------------------------------------------------------------===//
#include "FusionClusters.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::ds;

/// A column reduction copies at most this many cheap ops; beyond, reading the value back is cheaper.
static constexpr size_t kMaxCopiedOps = 12;
/// With fewer rows than this, one row per work unit would leave cores idle ...
static constexpr int64_t kMinRows = 32;
/// ... which matters only for domains of more elements than this.
static constexpr int64_t kSmallDomain = 1 << 15;

/// The tensor type of `value`.
static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// How `op` may take part in fusion; nullopt when it may not.
static std::optional<FusionKind> fusionKind(Operation *op) {
  auto fusable = dyn_cast_or_null<FusableOpInterface>(op);
  return fusable ? std::optional(fusable.getFusionKind()) : std::nullopt;
}

bool mlir::ds::isFreeToRepeat(Operation *op) {
  std::optional<FusionKind> kind = fusionKind(op);
  if (!kind || *kind == FusionKind::Reduction)
    return false;
  if (isa<ConstantOp, IotaOp, BroadcastOp>(op))
    return true;
  // What depends on constants and iotas alone, such as a causal mask.
  return *kind == FusionKind::Elementwise && llvm::all_of(op->getOperands(), [](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && !isa<BroadcastOp>(producer) && isFreeToRepeat(producer);
  });
}

/// Leading (columns) or trailing (rows) reductions have a kernel class; see FusionDomain.
static std::optional<FusionDomain> reductionDomain(ReduceOp reduce) {
  RankedTensorType type = tensorType(reduce.getInput());
  int64_t rank = type.getRank(), count = reduce.getDims().size();
  if (count == 0)
    return std::nullopt;
  FusionDomain domain;
  domain.shape.assign(type.getShape().begin(), type.getShape().end());
  if (reduce.getDims().front() == rank - count) {
    domain.kind = FusionDomain::Kind::Rows;
    domain.split = rank - count;
    return domain;
  }
  if (reduce.getDims().back() != count - 1)
    return std::nullopt;
  domain.kind = FusionDomain::Kind::Columns;
  domain.split = count;
  return domain;
}

bool mlir::ds::isFusionCandidate(Operation *op) {
  std::optional<FusionKind> kind = fusionKind(op);
  if (!kind)
    return false;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reductionDomain(reduce).has_value();
  return *kind == FusionKind::Elementwise || isa<ConstantOp, IotaOp, BroadcastOp, RandomUniformOp>(op);
}

/// The domain that `op` iterates over on its own.
static FusionDomain ownDomain(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return *reductionDomain(reduce);
  FusionDomain domain;
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  domain.shape.assign(shape.begin(), shape.end());
  return domain;
}

/// Product of sizes.
static int64_t product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

/// The domain of a group that holds both; nullopt when no kernel class has it.
static std::optional<FusionDomain> unite(const FusionDomain &a, const FusionDomain &b) {
  using Kind = FusionDomain::Kind;
  if (a.kind == Kind::Columns || b.kind == Kind::Columns) {
    bool same = a.kind == b.kind && a.shape == b.shape && a.split == b.split;
    return same ? std::optional(a) : std::nullopt;
  }
  const FusionDomain &rows = a.kind == Kind::Rows ? a : b, &other = a.kind == Kind::Rows ? b : a;
  if (rows.kind == Kind::Pointwise)
    return a.shape == b.shape ? std::optional(a) : std::nullopt;
  if (other.kind == Kind::Rows)
    return a.shape == b.shape && a.split == b.split ? std::optional(a) : std::nullopt;
  ArrayRef<int64_t> lead = ArrayRef(rows.shape).take_front(rows.split);
  bool isRowValue = ArrayRef(other.shape) == lead;
  if (!isRowValue && other.shape != rows.shape)
    return std::nullopt;
  if (!isRowValue && product(lead) < kMinRows && product(rows.shape) > kSmallDomain)
    return std::nullopt;
  return rows;
}

namespace {
/// The walk's state: a unit is a cluster, or one op outside all clusters.
class ClusterBuilder {
public:
  /// `copies` holds, per column reduction, the private ops that only it may have.
  using Copies = DenseMap<Operation *, SmallVector<Operation *>>;
  ClusterBuilder(Block &block, const Copies &copies) : block(block), copies(copies) {
    for (auto [index, op] : llvm::enumerate(block))
      position[&op] = index;
  }

  SmallVector<FusionCluster> run();

private:
  /// Puts `op` and its private copies into a cluster of their own.
  unsigned startCluster(Operation *op);
  /// Lets `op` (or a whole cluster) join `candidate` where domains agree, broadcasts fit and the union is
  /// convex.
  bool tryJoin(unsigned cluster, unsigned candidate);
  /// Clusters that produce what the ops of `cluster` read, looking through free ops; for column reductions
  /// also those that read the same values.
  SmallVector<unsigned> findCandidates(unsigned cluster);
  /// True when a path from `from` to `to` runs through a unit outside both, in either direction.
  bool hasPathBetween(unsigned a, unsigned b);
  bool reachesThroughOthers(unsigned from, unsigned to);
  /// True when each broadcast in `cluster` of a value of `producer` repeats a row value along its row.
  bool broadcastsFit(unsigned cluster, unsigned producer, const FusionDomain &united);

  Block &block;
  const Copies &copies;
  DenseMap<Operation *, unsigned> position;
  DenseMap<Operation *, unsigned> clusterOf;
  SmallVector<FusionCluster> clusters; ///< merged-away clusters are empty
};
} // namespace

/// Calls `visit(leaf, broadcasts)` for each value that `operand` is made of, looking through free ops.
static void visitLeaves(Value operand, SmallVectorImpl<BroadcastOp> &path,
                        function_ref<void(Value, ArrayRef<BroadcastOp>)> visit) {
  Operation *producer = operand.getDefiningOp();
  if (!producer || !isFreeToRepeat(producer))
    return visit(operand, path);
  auto broadcast = dyn_cast<BroadcastOp>(producer);
  if (broadcast)
    path.push_back(broadcast);
  for (Value inner : producer->getOperands())
    visitLeaves(inner, path, visit);
  if (broadcast)
    path.pop_back();
}

/// As above, over all operands of `op`.
static void visitLeaves(Operation *op, function_ref<void(Value, ArrayRef<BroadcastOp>)> visit) {
  SmallVector<BroadcastOp> path;
  for (Value operand : op->getOperands())
    visitLeaves(operand, path, visit);
}

unsigned ClusterBuilder::startCluster(Operation *op) {
  unsigned id = clusters.size();
  clusters.push_back({ownDomain(op), copies.lookup(op)});
  clusters.back().ops.push_back(op);
  for (Operation *member : clusters.back().ops)
    clusterOf[member] = id;
  return id;
}

bool ClusterBuilder::reachesThroughOthers(unsigned from, unsigned to) {
  unsigned first = UINT_MAX;
  for (Operation *op : clusters[from].ops)
    first = std::min(first, position[op]);
  llvm::SmallSetVector<Operation *, 32> pending;
  DenseSet<unsigned> seenClusters;
  auto expand = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        if (position[producer] >= first)
          pending.insert(producer);
  };
  // Start from what `to` reads outside both; a direct edge is no obstacle.
  auto isMember = [&](Operation *op, unsigned cluster) {
    auto it = clusterOf.find(op);
    return it != clusterOf.end() && it->second == cluster;
  };
  for (Operation *op : clusters[to].ops)
    visitLeaves(op, [&](Value leaf, ArrayRef<BroadcastOp>) {
      Operation *producer = leaf.getDefiningOp();
      if (producer && position[producer] >= first && !isMember(producer, from) && !isMember(producer, to))
        pending.insert(producer);
    });
  for (unsigned index = 0; index < pending.size(); ++index) {
    Operation *op = pending[index];
    if (isMember(op, from))
      return true;
    auto it = clusterOf.find(op);
    if (it == clusterOf.end()) {
      expand(op);
    } else if (it->second != to && seenClusters.insert(it->second).second) {
      for (Operation *member : clusters[it->second].ops)
        expand(member);
    }
  }
  return false;
}

bool ClusterBuilder::hasPathBetween(unsigned a, unsigned b) {
  return reachesThroughOthers(a, b) || reachesThroughOthers(b, a);
}

bool ClusterBuilder::broadcastsFit(unsigned cluster, unsigned producer, const FusionDomain &united) {
  bool fits = true;
  ArrayRef<int64_t> lead = ArrayRef(united.shape).take_front(united.split);
  for (Operation *op : clusters[cluster].ops)
    visitLeaves(op, [&](Value leaf, ArrayRef<BroadcastOp> path) {
      auto it = clusterOf.find(leaf.getDefiningOp());
      if (it == clusterOf.end() || it->second != producer || path.empty())
        return;
      BroadcastOp repeat = path[0];
      bool isRowRepeat = path.size() == 1 && united.kind == FusionDomain::Kind::Rows &&
                         tensorType(leaf).getShape() == lead &&
                         llvm::equal(repeat.getDims(), llvm::seq<int64_t>(0, united.split)) &&
                         tensorType(repeat.getResult()).getShape() == ArrayRef(united.shape);
      fits &= isRowRepeat;
    });
  return fits;
}

bool ClusterBuilder::tryJoin(unsigned cluster, unsigned candidate) {
  if (cluster == candidate || clusters[candidate].ops.empty())
    return false;
  std::optional<FusionDomain> united = unite(clusters[cluster].domain, clusters[candidate].domain);
  if (!united || !broadcastsFit(cluster, candidate, *united) || !broadcastsFit(candidate, cluster, *united) ||
      hasPathBetween(cluster, candidate))
    return false;
  for (Operation *op : clusters[candidate].ops)
    clusterOf[op] = cluster;
  clusters[cluster].ops.append(clusters[candidate].ops);
  clusters[candidate].ops.clear();
  clusters[cluster].domain = *united;
  return true;
}

SmallVector<unsigned> ClusterBuilder::findCandidates(unsigned cluster) {
  llvm::SmallSetVector<unsigned, 8> found;
  bool isColumns = clusters[cluster].domain.kind == FusionDomain::Kind::Columns;
  for (Operation *op : clusters[cluster].ops)
    visitLeaves(op, [&](Value leaf, ArrayRef<BroadcastOp>) {
      if (auto it = clusterOf.find(leaf.getDefiningOp()); it != clusterOf.end())
        found.insert(it->second);
      if (!isColumns)
        return;
      for (Operation *user : leaf.getUsers())
        if (auto it = clusterOf.find(user); it != clusterOf.end())
          if (clusters[it->second].domain.kind == FusionDomain::Kind::Columns)
            found.insert(it->second);
    });
  return found.takeVector();
}

/// Copies the cheap elementwise ops that feed `reduce`, so that a column kernel needs no full-size
/// intermediate. Returns the copies, in order. A value that someone else needs in memory anyway is read from
/// there.
static SmallVector<Operation *> copyCheapProducers(ReduceOp reduce) {
  SetVector<Operation *> slice;
  SmallVector<Value> pending = {reduce.getInput()};
  auto isCheap = [](Operation *op) {
    if (!op || fusionKind(op) != FusionKind::Elementwise || isFreeToRepeat(op))
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
  for (Operation &op : block) {
    if (!isFusionCandidate(&op) || isCopy.contains(&op))
      continue;
    // A free op that only candidates read is copied by each of them.
    if (isFreeToRepeat(&op) &&
        llvm::all_of(op.getUsers(), [](Operation *user) { return isFusionCandidate(user); }))
      continue;
    unsigned cluster = startCluster(&op);
    for (unsigned candidate : findCandidates(cluster))
      tryJoin(cluster, candidate);
  }
  SmallVector<FusionCluster> result;
  for (FusionCluster &cluster : clusters)
    if (!cluster.ops.empty()) {
      llvm::sort(cluster.ops, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
      result.push_back(std::move(cluster));
    }
  return result;
}

SmallVector<FusionCluster> mlir::ds::findFusionClusters(Block &block) {
  ClusterBuilder::Copies copies;
  for (ReduceOp reduce : llvm::make_early_inc_range(block.getOps<ReduceOp>()))
    if (std::optional<FusionDomain> domain = reductionDomain(reduce))
      if (domain->kind == FusionDomain::Kind::Columns)
        copies[reduce] = copyCheapProducers(reduce);
  // What was copied for every user is dead now.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isFusionCandidate(&op) && op.use_empty())
      op.erase();
  return ClusterBuilder(block, copies).run();
}
