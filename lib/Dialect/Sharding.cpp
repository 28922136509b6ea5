//===- Sharding.cpp - Along which numbers each op can be cut ------------------===//
//
// The one table of how ops are divided: for each kind of op its factors, and for those that are not
// themselves on smaller shapes, what a rank does in their place (ShardingParts.cpp). Those of layers stand in
// ShardingLayers.cpp, those of exchanges at its end. No pass names an op to cut it; what is
// not in the table runs whole on every rank.
//
//===---------------------------------------------------------------------------===//
#include "ShardingRules.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;

#include "ds/Dialect/DsShardingInterface.cpp.inc"

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

Blocks Blocks::ofSizes(ArrayRef<int64_t> sizes) {
  if (llvm::all_equal(sizes))
    return {static_cast<int64_t>(sizes.size())};
  const int64_t unit = std::accumulate(sizes.begin(), sizes.end(), int64_t(0), std::gcd<int64_t, int64_t>);
  return {1, llvm::map_to_vector<3>(sizes, [&](int64_t size) { return size / unit; })};
}

int64_t Blocks::count() const {
  return outer * (ratio.empty() ? 1 : std::accumulate(ratio.begin(), ratio.end(), int64_t(0)));
}

SmallVector<int64_t> Blocks::sizes(int64_t size) const {
  const int64_t piece = size / count();
  if (ratio.empty())
    return {piece};
  return llvm::map_to_vector(ratio, [&](int64_t pieces) { return pieces * piece; });
}

bool Blocks::divide(int64_t size, int64_t ranks) const {
  auto isDivided = [&](int64_t block) { return block % ranks == 0; };
  return size % count() == 0 && llvm::all_of(sizes(size), isDivided);
}

Cut mlir::ds::cutOf(const FactorDim &place, const Blocks &blocks) {
  if (!place.blocks.ratio.empty()) // then the factor is cut as one block
    return {place.dim, place.blocks};
  return {place.dim, {place.blocks.outer * blocks.outer, blocks.ratio}};
}

std::optional<Blocks> mlir::ds::findBlocks(const ShardingFactor &factor, const FactorDim &place,
                                           const Cut &cut, int64_t ranks) {
  if (!place.has() || cut.dim != place.dim)
    return std::nullopt;
  Blocks blocks;
  if (place.blocks.ratio.empty()) {
    blocks = {cut.blocks.outer / place.blocks.outer, cut.blocks.ratio};
    if (cut.blocks.outer % place.blocks.outer != 0)
      return std::nullopt;
  } else if (cut.blocks != place.blocks) {
    return std::nullopt;
  }
  const bool isAllowed = factor.isOutermost ? blocks == Blocks() : !factor.isEven || blocks.ratio.empty();
  if (!isAllowed || !blocks.divide(factor.size, ranks) || ranks % factor.ranksMultipleOf != 0)
    return std::nullopt;
  return blocks;
}

RankedTensorType mlir::ds::localType(RankedTensorType type, const Cut &cut, int64_t ranks) {
  SmallVector<int64_t> shape(type.getShape());
  shape[cut.dim] /= ranks;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Each dimension of the first result is a factor, which all have: operands and results of one shape.
static ShardingRule alikeRule(Operation *op) {
  ShardingRule rule;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
    ShardingFactor factor = makeFactor(op, size);
    for (FactorDim &place : factor.operands)
      place.dim = dim;
    for (FactorDim &place : factor.results)
      place.dim = dim;
    addFactor(rule, std::move(factor));
  }
  // A sum of rounded addends is rounded once more, as sums over ranks are that read other samples.
  const bool isRounded =
      isa<ConvertOp>(op) && isFloatTensor(op->getOperand(0)) && isFloatTensor(op->getResult(0));
  rule.passesAddends = isRounded || isa<AddOp, SubOp, NegOp, AccumulateOp>(op);
  return rule;
}

/// What is made of nothing, in each dimension. Along `counted` a rank counts from its own first index on, so
/// that it must have consecutive ones.
static ShardingRule madeRule(Operation *op, std::optional<int64_t> counted = std::nullopt) {
  ShardingRule rule;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0)))) {
    ShardingFactor factor = makeFactor(op, size);
    factor.results[0].dim = dim;
    factor.isOutermost = counted == static_cast<int64_t>(dim);
    addFactor(rule, std::move(factor));
  }
  return rule;
}

static ShardingRule broadcastRule(BroadcastOp op) {
  ShardingRule rule;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getResult()))) {
    ShardingFactor factor = makeFactor(op, size);
    factor.results[0].dim = dim;
    for (auto [own, to] : llvm::enumerate(op.getDims()))
      if (to == static_cast<int64_t>(dim) && shapeOf(op.getInput())[own] == size)
        factor.operands[0].dim = own;
    addFactor(rule, std::move(factor));
  }
  rule.passesAddends = true;
  return rule;
}

static ShardingRule transposeRule(TransposeOp op) {
  ShardingRule rule;
  for (auto [dim, from] : llvm::enumerate(op.getPerm())) {
    ShardingFactor factor = makeFactor(op, shapeOf(op.getResult())[dim]);
    factor.operands[0].dim = from;
    factor.results[0].dim = dim;
    addFactor(rule, std::move(factor));
  }
  rule.passesAddends = true;
  return rule;
}

namespace {
/// Goes through the sizes of a shape, factor by factor.
struct ShapeWalk {
  explicit ShapeWalk(ArrayRef<int64_t> shape) : shape(shape) { settle(); }
  bool isDone() const { return dim == shape.size(); }
  int64_t left() const { return shape[dim] / outer; }
  FactorDim place() const { return {static_cast<int64_t>(dim), {outer}, FactorDim::Lack::Whole}; }
  void take(int64_t factor) {
    before *= factor;
    outer *= factor;
    settle();
  }
  /// Leaves dimensions that are used up, those of size 1 too.
  void settle() {
    while (dim < shape.size() && shape[dim] == outer) {
      outer = 1;
      ++dim;
    }
  }

  ArrayRef<int64_t> shape;
  size_t dim = 0;
  int64_t outer = 1;  ///< what was taken of the dimension
  int64_t before = 1; ///< of the whole shape
};
} // namespace

/// The common refinement of both shapes. Where sizes do not divide each other, what they make up together is
/// cut along no factor.
static ShardingRule reshapeRule(ReshapeOp op) {
  ShardingRule rule;
  rule.passesAddends = true;
  ShapeWalk from(shapeOf(op.getInput())), to(shapeOf(op.getResult()));
  while (!from.isDone() && !to.isDone()) {
    const int64_t small = std::min(from.left(), to.left()), large = std::max(from.left(), to.left());
    if (from.before == to.before && large % small == 0) {
      ShardingFactor factor = makeFactor(op, small);
      factor.operands[0] = from.place();
      factor.results[0] = to.place();
      addFactor(rule, std::move(factor));
      from.take(small);
      to.take(small);
    } else {
      ShapeWalk &behind =
          from.before < to.before || (from.before == to.before && from.left() < to.left()) ? from : to;
      behind.take(behind.left());
    }
  }
  return rule;
}

/// A window of `small` in `large`: untouched dimensions are factors, and a touched one is where the window is
/// one of equal blocks.
static ShardingRule windowRule(Operation *op, ArrayRef<int64_t> large, ArrayRef<int64_t> small,
                               ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides, bool isResultLarge) {
  ShardingRule rule;
  rule.passesAddends = true;
  for (auto [dim, size] : llvm::enumerate(small)) {
    const bool isBlock = size > 0 && strides[dim] == 1 && large[dim] % size == 0 && offsets[dim] % size == 0;
    if (!isBlock)
      continue;
    ShardingFactor factor = makeFactor(op, size);
    FactorDim &of = isResultLarge ? factor.results[0] : factor.operands[0];
    of.dim = dim;
    of.blocks.outer = large[dim] / size;
    (isResultLarge ? factor.operands[0] : factor.results[0]).dim = dim;
    addFactor(rule, std::move(factor));
  }
  return rule;
}

/// Makes `factor` one of the pieces that `parts` are along `dim`; `whole` is what it is of all. Pieces that
/// differ in size are each cut as one block.
static void addPieces(ShardingFactor &factor, ValueRange parts, int64_t dim, Blocks &whole) {
  const auto sizes = llvm::map_to_vector<3>(parts, [&](Value part) { return shapeOf(part)[dim]; });
  whole = Blocks::ofSizes(sizes);
  factor.size = std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) / whole.count();
  factor.isOutermost = !whole.ratio.empty();
}

/// Several values side by side along `dim` of one.
static ShardingRule joinRule(Operation *op, ValueRange parts, int64_t joined, bool isResultWhole) {
  ShardingRule rule;
  rule.passesAddends = true;
  for (auto [index, size] : llvm::enumerate(shapeOf(parts.front()))) {
    const auto dim = static_cast<int64_t>(index);
    ShardingFactor factor = makeFactor(op, size);
    for (FactorDim &place : factor.operands)
      place.dim = dim;
    for (FactorDim &place : factor.results)
      place.dim = dim;
    if (dim == joined)
      addPieces(factor, parts, joined, (isResultWhole ? factor.results : factor.operands)[0].blocks);
    addFactor(rule, std::move(factor));
  }
  return rule;
}

static FactorKind kindOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return FactorKind::Sum;
  case ReduceKind::Max:
    return FactorKind::Max;
  case ReduceKind::Min:
    return FactorKind::Min;
  }
  llvm_unreachable("a kind of reduction that is not in the table");
}

static ShardingRule reduceRule(ReduceOp op) {
  ShardingRule rule;
  int64_t kept = 0;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getInput()))) {
    const bool isReduced = llvm::is_contained(op.getDims(), static_cast<int64_t>(dim));
    ShardingFactor factor = makeFactor(op, size, isReduced ? kindOf(op.getKind()) : FactorKind::Parallel);
    factor.operands[0].dim = dim;
    if (!isReduced)
      factor.results[0].dim = kept++;
    addFactor(rule, std::move(factor));
  }
  return rule;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static ShardingRule ruleOf(BroadcastOp op) { return broadcastRule(op); }
static ShardingRule ruleOf(TransposeOp op) { return transposeRule(op); }
static ShardingRule ruleOf(ReshapeOp op) { return reshapeRule(op); }
static ShardingRule ruleOf(ReduceOp op) { return reduceRule(op); }
static ShardingRule ruleOf(ConstantOp op) {
  return isa<SplatElementsAttr>(op.getValue()) ? madeRule(op) : ShardingRule();
}
static ShardingRule ruleOf(IotaOp op) { return madeRule(op, op.getDim()); }
static ShardingRule ruleOf(RandomUniformOp op) {
  ShardingRule rule = madeRule(op);
  for (ShardingFactor &factor : rule.factors)
    if (op.getNumbers())
      factor.operands.back().dim = factor.results[0].dim;
    else
      factor.isEven = true; // elements are counted by strides
  return rule;
}
static ShardingRule ruleOf(SliceOp op) {
  return windowRule(op, shapeOf(op.getInput()), shapeOf(op.getResult()), op.getOffsets(), op.getStrides(),
                    /*isResultLarge=*/false);
}
static ShardingRule ruleOf(PadOp op) {
  return windowRule(op, shapeOf(op.getResult()), shapeOf(op.getInput()), op.getOffsets(), op.getStrides(),
                    /*isResultLarge=*/true);
}
static ShardingRule ruleOf(ConcatOp op) {
  return joinRule(op, op.getInputs(), op.getDim(), /*isResultWhole=*/true);
}
static ShardingRule ruleOf(SplitOp op) {
  return joinRule(op, op.getPieces(), op.getDim(), /*isResultWhole=*/false);
}

namespace {
/// What every model does: a rank runs the op on what it has, unless there is more to say.
template <typename Model, typename OpT>
struct TableEntry : ShardingOpInterface::ExternalModel<Model, OpT> {
  SmallVector<Value> localize(Operation *op, OpBuilder &builder, ValueRange operands, TypeRange types,
                              const LocalPart &part) const {
    return localizeOp(cast<OpT>(op), builder, operands, types, part);
  }
};

/// Ops whose operands and results have one shape.
template <typename OpT>
struct Alike : TableEntry<Alike<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const { return alikeRule(op); }
};

/// Ops with a rule of their own.
template <typename OpT>
struct Own : TableEntry<Own<OpT>, OpT> {
  ShardingRule getShardingRule(Operation *op) const { return ruleOf(cast<OpT>(op)); }
};

template <template <typename> class Model, typename... Ops>
void attach(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}
} // namespace

void mlir::ds::attachShardingRules(MLIRContext &context) {
  attach<Alike, NegOp, AbsOp, SignOp, ExpOp, LogOp, SqrtOp, RsqrtOp, TanhOp, ErfOp, SigmoidOp, GeluOp,
         GeluGradOp, SinOp, CosOp, FloorOp, NotOp, AddOp, SubOp, MulOp, DivOp, MaxOp, MinOp, PowOp, AndOp,
         OrOp, CompareOp, SelectOp, ConvertOp, AccumulateOp>(context);
  attach<Own, ConstantOp, IotaOp, RandomUniformOp, BroadcastOp, ReshapeOp, TransposeOp, SliceOp, PadOp,
         ConcatOp, SplitOp, ReduceOp, MatmulOp, AttentionOp, AttentionGradOp, CrossEntropyOp,
         CrossEntropyGradOp, CrossEntropyWithGradOp, EmbeddingOp, EmbeddingGradOp, ConvOp, ConvGradInputOp,
         ConvGradWeightOp, AllToAllOp, AllGatherOp, LocalShardOp, ReduceScatterOp, AllReduceOp>(context);
}
