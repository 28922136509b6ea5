//===- FusionDomain.cpp - What may share a generated kernel ---------------------===//
#include "FusionDomain.h"

#include "ds/Dialect/Emitter.h"

using namespace mlir;
using namespace mlir::ds;

/// With fewer rows than this, one row per work unit would leave cores idle ...
static constexpr int64_t kMinRows = 32;
/// ... which matters only for domains of more elements than this.
static constexpr int64_t kSmallDomain = 1 << 15;
/// Whoever reads a free op copies all that it is computed from: at most so many ops in a chain.
static constexpr unsigned kMaxFreeDepth = 64;

std::optional<FusionKind> mlir::ds::fusionKind(Operation *op) {
  auto fusable = dyn_cast_or_null<FusableOpInterface>(op);
  return fusable ? std::optional(fusable.getFusionKind()) : std::nullopt;
}

bool mlir::ds::widens(Operation *op) {
  auto convert = dyn_cast<ConvertOp>(op);
  return convert && tensorType(convert.getInput()).getElementTypeBitWidth() <
                        tensorType(convert.getResult()).getElementTypeBitWidth();
}

FreeOps::FreeOps(Block &block) {
  for (Operation &op : block)
    if (unsigned depth = findDepth(&op); depth > 0)
      depths[&op] = depth;
}

unsigned FreeOps::findDepth(Operation *op) const {
  std::optional<FusionKind> kind = fusionKind(op);
  if (!kind || *kind == FusionKind::Reduction)
    return 0;
  if (isa<ConstantOp, IotaOp, BroadcastOp>(op) || widens(op))
    return 1;
  if (*kind != FusionKind::Elementwise)
    return 0;
  unsigned depth = 0;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || isa<BroadcastOp>(producer) || widens(producer) || !contains(producer))
      return 0;
    depth = std::max(depth, depths.lookup(producer));
  }
  return depth < kMaxFreeDepth ? depth + 1 : 0;
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

FusionDomain mlir::ds::ownDomain(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return *reductionDomain(reduce);
  FusionDomain domain;
  ArrayRef<int64_t> shape = tensorType(op->getResult(0)).getShape();
  domain.shape.assign(shape.begin(), shape.end());
  auto convert = dyn_cast<ConvertOp>(op);
  domain.rounds = convert && tensorType(convert.getInput()).getElementTypeBitWidth() >
                                 tensorType(convert.getResult()).getElementTypeBitWidth();
  return domain;
}

/// Product of sizes.
static int64_t product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

/// Whether `domain` is of a conversion of what the reductions of `columns` give.
static bool roundsTotals(const FusionDomain &domain, const FusionDomain &columns) {
  return domain.rounds && ArrayRef(domain.shape) == ArrayRef(columns.shape).drop_front(columns.split);
}

std::optional<FusionDomain> mlir::ds::unite(const FusionDomain &a, const FusionDomain &b) {
  using Kind = FusionDomain::Kind;
  if (a.kind == Kind::Columns || b.kind == Kind::Columns) {
    bool same = a.kind == b.kind && a.shape == b.shape && a.split == b.split;
    const FusionDomain &columns = a.kind == Kind::Columns ? a : b, &other = a.kind == Kind::Columns ? b : a;
    return same || roundsTotals(other, columns) ? std::optional(columns) : std::nullopt;
  }
  const FusionDomain &rows = a.kind == Kind::Rows ? a : b, &other = a.kind == Kind::Rows ? b : a;
  if (rows.kind == Kind::Pointwise) {
    FusionDomain both = a;
    both.rounds = false;
    return a.shape == b.shape ? std::optional(both) : std::nullopt;
  }
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
