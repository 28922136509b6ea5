//===- LoopNest.cpp - The loops around a fused body ----------------------------===//

#include "LoopNest.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/Twine.h"

namespace mlir::ds::codegen {

/// Bounds that stand for "as many as the launch says".
static constexpr int64_t kUnknownSize = int64_t(1) << 40;

/// Dimension sets are 32-bit masks.
static constexpr int64_t kMaxRank = 24;

/// Units smaller than this many weighted element operations are not worth a thread's wake-up (about 10 us).
static constexpr int64_t kGrainWork = 1 << 16;

bool LoopNest::isEmpty() const {
  return llvm::any_of(outputs, [&](const NestOutput &output) {
    return llvm::is_contained(output.full ? llvm::ArrayRef<int64_t>(space.sizes)
                                          : llvm::ArrayRef<int64_t>(space.sizesOf(false)),
                              0);
  });
}

int64_t LoopNest::countOuter(bool reducedOnes) const {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(space.sizes))
    if (space.isReduced(dim) == reducedOnes && vectorDim != dim)
      count *= size;
  return count;
}

SmallVector<Node *> LoopNest::reductionsOf(unsigned level) const {
  return llvm::to_vector(
      llvm::make_filter_range(reductions, [&](const Node *reduction) { return reduction->level == level; }));
}

bool LoopNest::hasFullOutputs() const {
  return llvm::any_of(outputs, [](const NestOutput &output) { return output.full; });
}

/// The anchor shape of a body; see KernelClass.h.
static LoopSpace anchorSpace(const Body &body) {
  LoopSpace space;
  for (Operation *op : body.ops) {
    auto reduce = dyn_cast<ds::ReduceOp>(op);
    if (!reduce || reduce.getDims().empty() || reduce->use_empty())
      continue;
    llvm::append_range(space.sizes, cast<RankedTensorType>(reduce.getInput().getType()).getShape());
    for (int64_t dim : reduce.getDims())
      space.reduced |= 1u << dim;
    return space;
  }
  llvm::append_range(space.sizes, cast<RankedTensorType>(body.outputs[0].getType()).getShape());
  return space;
}

/// `space` without the dimensions of size 1.
static LoopSpace withoutUnits(const LoopSpace &space) {
  LoopSpace result;
  for (auto [dim, size] : llvm::enumerate(space.sizes)) {
    if (size == 1)
      continue;
    if (space.isReduced(dim))
      result.reduced |= 1u << result.sizes.size();
    result.sizes.push_back(size);
  }
  return result;
}

/// True when `expr` is the same function of outer * innerSize + inner.
static bool walksAsOne(Index expr, unsigned outer, unsigned inner, int64_t innerSize) {
  if (linearCoefficient(expr, outer) != linearCoefficient(expr, inner) * innerSize)
    return false;
  return llvm::all_of(expr->terms, [&](const IndexTerm &term) {
    return term.atom->kind == IndexAtom::Kind::Dim || walksAsOne(term.atom->inner, outer, inner, innerSize);
  });
}

/// Every expression that code is emitted for.
static SmallVector<Index> emittedIndices(const LoopNest &nest) {
  SmallVector<Index> result;
  for (const Node &node : nest.graph->allNodes()) {
    if (node.index)
      result.push_back(node.index);
    for (const Condition &condition : node.conditions)
      result.push_back(condition.expr);
  }
  for (const NestOutput &output : nest.outputs)
    result.push_back(output.address);
  return result;
}

/// `nest.space` with neighbours joined that every emitted expression walks as one.
static LoopSpace joinDims(const LoopNest &nest) {
  const LoopSpace &space = nest.space;
  SmallVector<Index> indices = emittedIndices(nest);
  SmallVector<int64_t> sizes;
  SmallVector<bool> reduced;
  unsigned inner = 0; // The dimension that carries the joined run.
  for (unsigned dim = space.sizes.size(); dim-- > 0;) {
    bool joins = !sizes.empty() && reduced.back() == space.isReduced(dim) &&
                 llvm::all_of(indices, [&](Index i) { return walksAsOne(i, dim, inner, sizes.back()); });
    if (joins) {
      sizes.back() *= space.sizes[dim];
      continue;
    }
    sizes.push_back(space.sizes[dim]);
    reduced.push_back(space.isReduced(dim));
    inner = dim;
  }
  LoopSpace result;
  for (size_t k = sizes.size(); k-- > 0;) {
    if (reduced[k])
      result.reduced |= 1u << result.sizes.size();
    result.sizes.push_back(sizes[k]);
  }
  return result;
}

/// Resolves the outputs of `body` over `nest.space`.
static LogicalResult resolveOutputs(LoopNest &nest, const Body &body, const Layout *layout,
                                    std::string &reason) {
  unsigned numInputs = layout ? layout->inputs.size() : 0;
  if (layout)
    for (auto [number, input] : llvm::enumerate(layout->inputs))
      nest.graph->addLeaf(input, number, layout->strides[number]);
  for (auto [position, value] : llvm::enumerate(body.outputs)) {
    auto type = cast<RankedTensorType>(value.getType());
    NestOutput output;
    auto indices = nest.graph->outputIndex(type.getShape(), output.full);
    if (!indices) {
      reason = "an output has as many elements as neither the anchor nor its kept dimensions";
      return failure();
    }
    output.value = nest.graph->resolve(value, *indices);
    if (!output.value) {
      reason = nest.graph->reason();
      return failure();
    }
    if (!output.full && (output.value->dims & nest.space.reduced)) {
      reason = "an output of one element per row depends on the position in the row";
      return failure();
    }
    output.buffer = numInputs + position;
    output.address = nest.context.constant(0);
    if (layout) {
      for (auto [index, stride] : llvm::zip_equal(*indices, layout->strides[output.buffer]))
        output.address = nest.context.add(output.address, index, stride);
    } else if (type.hasStaticShape()) {
      output.address = nest.context.linearize(*indices, type.getShape());
    } else {
      output.address = (*indices)[0];
    }
    nest.outputs.push_back(output);
  }
  return success();
}

/// Where conditions on the vector dimension alone change their answer.
static void collectCuts(LoopNest &nest) {
  if (!nest.vectorDim || nest.isDynamic() || !nest.reductions.empty())
    return;
  llvm::SmallSet<int64_t, 8> cuts;
  unsigned v = *nest.vectorDim;
  for (const Node &node : nest.graph->allNodes()) {
    for (const Condition &condition : node.conditions) {
      Index expr = condition.expr;
      if (expr->terms.size() != 1 || linearCoefficient(expr, v) <= 0)
        continue;
      int64_t factor = linearCoefficient(expr, v);
      for (int64_t bound : {condition.low, condition.high + 1}) {
        // The first v with factor * v + constant >= bound.
        int64_t cut = (bound - expr->constant + factor - 1) / factor;
        if (bound - expr->constant > 0 && cut < nest.vectorSize())
          cuts.insert(cut);
      }
    }
  }
  nest.cuts.assign(cuts.begin(), cuts.end());
  llvm::sort(nest.cuts);
}

/// Relative cost of one access when `dim` fills vectors: one load, a repeated element, a gather, a gather
/// whose addresses are computed lane by lane.
static double accessCost(Index address, unsigned dim) {
  if (!isLinearIn(address, dim))
    return 12;
  int64_t distance = linearCoefficient(address, dim);
  return distance == 0 ? 0.5 : distance == 1 ? 1 : 8;
}

/// The dimension along which accesses are consecutive and lanes are full; the last of equals.
static std::optional<unsigned> chooseVectorDim(const LoopNest &nest) {
  constexpr int64_t kLanes = 16;
  std::optional<unsigned> best;
  double least = 0;
  for (auto [dim, size] : llvm::enumerate(nest.space.sizes)) {
    double cost = 0;
    for (const Node &node : nest.graph->allNodes())
      if (node.kind == Node::Kind::Load || node.kind == Node::Kind::Table)
        cost += accessCost(node.index, dim);
    for (const NestOutput &output : nest.outputs)
      cost += accessCost(output.address, dim);
    if (size > 0 && !ShapedType::isDynamic(size))
      cost *= double(llvm::alignTo(size, kLanes)) / double(size);
    if (!best || cost <= least) {
      best = dim;
      least = cost;
    }
  }
  return best;
}

/// Resolves `body` over `space`. `vectorDim` is chosen where it is not given; `window` is a part of it.
static std::unique_ptr<LoopNest> buildOver(const LoopSpace &space, const Body &body, const Layout *layout,
                                           std::string &reason,
                                           std::optional<unsigned> vectorDim = std::nullopt,
                                           const IndexRange *window = nullptr) {
  auto nest = std::make_unique<LoopNest>();
  nest->space = space;
  for (auto [dim, size] : llvm::enumerate(space.sizes)) {
    int64_t last = ShapedType::isDynamic(size) ? kUnknownSize : std::max<int64_t>(size, 1) - 1;
    nest->context.addDim(window && dim == vectorDim ? *window : IndexRange{0, last});
  }
  nest->graph = std::make_unique<BodyGraph>(nest->context, nest->space, body);
  if (failed(resolveOutputs(*nest, body, layout, reason)))
    return nullptr;
  nest->vectorDim = vectorDim ? vectorDim : chooseVectorDim(*nest);
  for (const Node &node : nest->graph->allNodes())
    if (node.kind == Node::Kind::Reduce)
      nest->reductions.push_back(const_cast<Node *>(&node));
  llvm::sort(nest->reductions,
             [](Node *a, Node *b) { return std::tie(a->level, a->id) < std::tie(b->level, b->id); });
  if (!nest->reductions.empty())
    nest->kind =
        nest->vectorDim && !space.isReduced(*nest->vectorDim) ? ds::KernelKind::Column : ds::KernelKind::Row;
  collectCuts(*nest);
  return nest;
}

std::unique_ptr<LoopNest> buildLoopNest(const Body &body, const Layout *layout, std::string &reason,
                                        const IndexRange *window) {
  if (body.outputs.empty()) {
    reason = "a body without outputs";
    return nullptr;
  }
  for (Operation *op : body.ops)
    for (Type type : op->getOperandTypes())
      if (cast<RankedTensorType>(type).getRank() > kMaxRank) {
        reason = "a tensor of rank > " + std::to_string(kMaxRank);
        return nullptr;
      }
  LoopSpace space = withoutUnits(anchorSpace(body));
  if (space.sizes.size() > 1 && llvm::any_of(space.sizes, ShapedType::isDynamic)) {
    reason = "a tensor of rank > 1 with unknown sizes";
    return nullptr;
  }
  std::unique_ptr<LoopNest> nest = buildOver(space, body, layout, reason);
  if (!nest)
    return nullptr;
  nest = buildOver(joinDims(*nest), body, layout, reason);
  if (!window)
    return nest;
  return buildOver(nest->space, body, layout, reason, nest->vectorDim, window);
}

//===----------------------------------------------------------------------===//
// Work units and the public classification
//===----------------------------------------------------------------------===//

/// Rough cost of one iteration, in simple vector operations.
static int64_t weighIteration(const LoopNest &nest) {
  int64_t weight = nest.outputs.size();
  for (const Node &node : nest.graph->allNodes())
    weight += isHeavy(node) ? 8 : 1;
  return weight;
}

WorkUnits divideWork(const LoopNest &nest, int64_t lanes) {
  WorkUnits units;
  int64_t weight = weighIteration(nest), vector = nest.vectorSize();
  units.chunk = vector;
  if (nest.isEmpty() || !nest.vectorDim)
    return units;
  int64_t outer = nest.countOuter(false), perUnit = 1;
  if (nest.kind == ds::KernelKind::Pointwise && outer == 1) {
    units.unitIsElement = true;
    units.extent = nest.isDynamic() ? 0 : vector;
    units.grain = std::max<int64_t>(1024, llvm::divideCeil(kGrainWork / weight, 1024) * 1024);
    return units;
  }
  if (nest.kind == ds::KernelKind::Pointwise) {
    // Few long rows: cut them, or two threads could not share them evenly.
    if (outer < 64 && vector > 8192)
      units.chunk = 4096;
    perUnit = units.chunk;
  } else if (nest.kind == ds::KernelKind::Row) {
    perUnit = vector * nest.countOuter(true);
  } else {
    // Up to four accumulators of one vector each hide the latency of additions; fewer where columns are few.
    int64_t blocks = 4;
    while (blocks > 1 && (outer * vector < 8 * lanes * blocks || vector % (lanes * blocks) != 0))
      blocks /= 2;
    units.chunk = lanes * blocks;
    perUnit = units.chunk * nest.countOuter(true);
  }
  units.chunksPerRow = nest.kind == ds::KernelKind::Row ? 1 : llvm::divideCeil(vector, units.chunk);
  units.extent = outer * units.chunksPerRow;
  units.grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, perUnit * weight));
  return units;
}

} // namespace mlir::ds::codegen

namespace mlir::ds {
using namespace codegen;

LogicalResult classify(ArrayRef<Operation *> ops, ArrayRef<Value> outputs, KernelClass &result,
                       std::string *reason) {
  Body body{SmallVector<Operation *>(ops), SmallVector<Value>(outputs)};
  std::string why;
  std::unique_ptr<LoopNest> nest = buildLoopNest(body, nullptr, why);
  if (!nest) {
    if (reason)
      *reason = why;
    return failure();
  }
  WorkUnits units = divideWork(*nest, 16);
  result = {nest->kind, units.extent, units.grain, 0};
  for (Operation *op : ops)
    if (auto cost = dyn_cast<CostOpInterface>(op))
      if (!nest->isDynamic())
        result.flops += cost.getFlops();
  return success();
}

/// The ops and results of a body.
static Body bodyOf(Block &block) {
  Body body;
  for (Operation &op : block.without_terminator())
    body.ops.push_back(&op);
  llvm::append_range(body.outputs, block.getTerminator()->getOperands());
  return body;
}

LogicalResult classify(Block &block, KernelClass &result, std::string *reason) {
  Body body = bodyOf(block);
  return classify(body.ops, body.outputs, result, reason);
}

std::optional<ArrayRef<int64_t>> uniformShape(Block &block) {
  ValueRange outputs = block.getTerminator()->getOperands();
  if (outputs.empty())
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(outputs.front().getType()).getShape();
  auto hasShape = [&](Value value) { return cast<RankedTensorType>(value.getType()).getShape() == shape; };
  auto isScalar = [](Value value) { return cast<RankedTensorType>(value.getType()).getRank() == 0; };
  auto isEither = [&](Value value) { return hasShape(value) || isScalar(value); };
  if (shape.empty() || !llvm::all_of(outputs, hasShape) || !llvm::all_of(block.getArguments(), isEither))
    return std::nullopt;
  for (Operation &op : block.without_terminator()) {
    auto constant = dyn_cast<ConstantOp>(op);
    const bool isUniform = isa<ScalarBodyOpInterface>(op) ||
                           (constant && isa<SplatElementsAttr>(constant.getValue())) ||
                           (isa<BroadcastOp>(op) && isScalar(op.getOperand(0)));
    if (!isUniform || !isEither(op.getResult(0)))
      return std::nullopt;
  }
  return shape;
}

bool mayShareMemory(Block &block, unsigned argument, unsigned output) {
  Body body = bodyOf(block);
  if (block.getArgument(argument).getType() != body.outputs[output].getType())
    return false;
  if (uniformShape(block)) // each read is of the element that is written: of most updates, and there are many
    return true;
  Layout layout;
  llvm::append_range(layout.inputs, block.getArguments());
  for (Type type : llvm::concat<Type>(llvm::to_vector(block.getArgumentTypes()),
                                      llvm::to_vector(ValueRange(body.outputs).getTypes())))
    layout.strides.push_back(contiguousStrides(cast<RankedTensorType>(type).getShape()));
  std::string reason;
  std::unique_ptr<LoopNest> nest = buildLoopNest(body, &layout, reason);
  if (!nest)
    return false;
  return llvm::all_of(nest->graph->allNodes(), [&](const Node &node) {
    return node.kind != Node::Kind::Load || node.buffer != argument ||
           node.index == nest->outputs[output].address;
  });
}

} // namespace mlir::ds
