//===- BodyGraph.cpp - A fused body as a graph of indexed scalars --------------===//

#include "BodyGraph.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::ds::codegen {

SmallVector<int64_t> LoopSpace::sizesOf(bool reducedOnes) const {
  SmallVector<int64_t> result;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (isReduced(dim) == reducedOnes)
      result.push_back(size);
  return result;
}

SmallVector<int64_t> contiguousStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * std::max<int64_t>(shape[k], 1);
  return strides;
}

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

BodyGraph::BodyGraph(IndexContext &context, const LoopSpace &space, const Body &body)
    : context(context), space(space) {
  for (Operation *op : body.ops)
    ops.insert({op, ops.size()});
}

void BodyGraph::addLeaf(Value value, unsigned number, ArrayRef<int64_t> strides) {
  leaves[value] = {number, SmallVector<int64_t>(strides)};
}

Node *BodyGraph::fail(const Twine &message) {
  if (failure.empty())
    failure = message.str();
  return nullptr;
}

Node *BodyGraph::newNode(Node::Kind kind, Type type, Operation *op) {
  Node &node = nodes.emplace_back();
  node.kind = kind;
  node.id = nodes.size() - 1;
  node.op = op;
  node.type = type;
  return &node;
}

/// Row-major position among the dimensions that are kept, or among those that are reduced.
static Index positionOf(IndexContext &context, const LoopSpace &space, bool reducedOnes) {
  SmallVector<Index> indices;
  for (unsigned dim = 0; dim < space.sizes.size(); ++dim)
    if (space.isReduced(dim) == reducedOnes)
      indices.push_back(context.dim(dim));
  return context.linearize(indices, space.sizesOf(reducedOnes));
}

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

std::optional<SmallVector<Index>> BodyGraph::outputIndex(ArrayRef<int64_t> shape, bool &isFull) {
  if (shape.size() == 1 && ShapedType::isDynamic(shape[0])) {
    isFull = true;
    if (shape != ArrayRef<int64_t>(space.sizes))
      return std::nullopt;
    return SmallVector<Index>{context.dim(0)};
  }
  if (llvm::any_of(space.sizes, ShapedType::isDynamic))
    return std::nullopt;
  isFull = product(shape) == product(space.sizes);
  if (isFull) {
    SmallVector<Index> all;
    for (unsigned dim = 0; dim < space.sizes.size(); ++dim)
      all.push_back(context.dim(dim));
    return context.delinearize(context.linearize(all, space.sizes), shape);
  }
  if (product(shape) != product(space.sizesOf(false)))
    return std::nullopt;
  return context.delinearize(positionOf(context, space, false), shape);
}

Node *BodyGraph::resolve(Value value, ArrayRef<Index> indices) {
  auto key = std::make_pair(value.getAsOpaquePointer(), std::vector<Index>(indices.begin(), indices.end()));
  if (auto it = memo.find(key); it != memo.end())
    return it->second;
  Node *node = build(value, indices);
  if (!node)
    return nullptr;
  finish(*node);
  memo.insert({std::move(key), node});
  return node;
}

/// Derives what a node inherits from its operands and indices. Doing it twice changes nothing.
void BodyGraph::finish(Node &node) {
  for (Node *operand : node.operands) {
    node.dims |= operand->dims;
    node.level = std::max(node.level, operand->level);
  }
  if (node.index)
    node.dims |= node.index->dims;
  for (const Condition &condition : node.conditions)
    node.dims |= condition.expr->dims;
  if (node.kind == Node::Kind::Reduce) {
    node.dims &= ~space.reduced;
    node.level = node.operands[0]->level + 1;
  }
}

Node *BodyGraph::build(Value value, ArrayRef<Index> indices) {
  Operation *op = value.getDefiningOp();
  if (!op || !ops.contains(op))
    return buildLeaf(value, indices);
  Type type = tensorType(value).getElementType();
  if (isa<ds::ScalarBodyOpInterface>(op))
    return buildElementwise(op, type, indices);
  return llvm::TypeSwitch<Operation *, Node *>(op)
      .Case([&](ds::ConstantOp constant) { return buildConstant(constant, indices); })
      .Case([&](ds::BroadcastOp broadcast) {
        SmallVector<Index> inner;
        auto shape = tensorType(broadcast.getInput()).getShape();
        for (auto [dim, size] : llvm::zip_equal(broadcast.getDims(), shape))
          inner.push_back(size == 1 ? context.constant(0) : indices[dim]);
        return resolve(broadcast.getInput(), inner);
      })
      .Case([&](ds::ReshapeOp reshape) { return buildReshape(reshape, indices); })
      .Case([&](ds::TransposeOp transpose) {
        SmallVector<Index> inner(indices.size());
        for (auto [k, source] : llvm::enumerate(transpose.getPerm()))
          inner[source] = indices[k];
        return resolve(transpose.getInput(), inner);
      })
      .Case([&](ds::SliceOp slice) {
        SmallVector<Index> inner;
        for (auto [index, offset, stride] : llvm::zip_equal(indices, slice.getOffsets(), slice.getStrides()))
          inner.push_back(context.scale(index, stride, offset));
        return resolve(slice.getInput(), inner);
      })
      .Case([&](ds::IotaOp iota) {
        Node *node = newNode(Node::Kind::Position, type, op);
        node->index = context.scale(indices[iota.getDim()], iota.getStep(), iota.getStart());
        return node;
      })
      .Case([&](ds::RandomUniformOp random) { return buildRandom(random, indices); })
      .Case([&](ds::PadOp pad) { return buildPad(pad, indices); })
      .Case([&](ds::ConcatOp concat) { return buildConcat(concat, indices); })
      .Case([&](ds::ReduceOp reduce) { return buildReduce(reduce, indices); })
      .Default([&](Operation *other) { return fail(other->getName().getStringRef() + " cannot be fused"); });
}

Node *BodyGraph::buildReshape(ds::ReshapeOp op, ArrayRef<Index> indices) {
  RankedTensorType from = tensorType(op.getInput()), to = tensorType(op.getResult());
  if (!from.hasStaticShape() || !to.hasStaticShape())
    return from == to ? resolve(op.getInput(), indices) : fail("reshape of a tensor of unknown size");
  return resolve(op.getInput(),
                 context.delinearize(context.linearize(indices, to.getShape()), from.getShape()));
}

Node *BodyGraph::buildLeaf(Value value, ArrayRef<Index> indices) {
  auto it = leaves.find(value);
  if (it == leaves.end())
    it = leaves.insert({value, {unsigned(leaves.size()), contiguousStrides(tensorType(value).getShape())}})
             .first;
  Index address = context.constant(0);
  for (auto [index, stride] : llvm::zip_equal(indices, it->second.strides))
    address = context.add(address, index, stride);
  Node *node = newNode(Node::Kind::Load, tensorType(value).getElementType());
  node->buffer = it->second.number;
  node->index = address;
  return node;
}

Node *BodyGraph::buildElementwise(Operation *op, Type type, ArrayRef<Index> indices) {
  SmallVector<Node *> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(resolve(operand, indices));
    if (!operands.back())
      return nullptr;
  }
  Node *node = newNode(Node::Kind::Elementwise, type, op);
  node->operands.assign(operands.begin(), operands.end());
  return node;
}

Node *BodyGraph::buildConstant(ds::ConstantOp op, ArrayRef<Index> indices) {
  RankedTensorType type = tensorType(op.getResult());
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return fail("a constant that is not dense");
  if (elements.isSplat()) {
    Node *node = newNode(Node::Kind::Constant, type.getElementType(), op);
    node->value = cast<TypedAttr>(elements.getSplatValue<Attribute>());
    return node;
  }
  Node *node = newNode(Node::Kind::Table, type.getElementType(), op);
  node->index = context.linearize(indices, type.getShape());
  return node;
}

Node *BodyGraph::buildZero(Type type) {
  Node *node = newNode(Node::Kind::Constant, type);
  Builder builder(type.getContext());
  if (auto integer = dyn_cast<IntegerType>(type))
    node->value = IntegerAttr::get(integer, APInt(integer.getWidth(), 0));
  else
    node->value = builder.getFloatAttr(type, 0.0);
  return node;
}

Node *BodyGraph::buildRandom(ds::RandomUniformOp op, ArrayRef<Index> indices) {
  auto shape = tensorType(op.getResult()).getShape();
  if (!op.getNumbers() && llvm::any_of(shape, ShapedType::isDynamic) && shape.size() != 1)
    return fail("random numbers for a tensor of unknown size");
  Node *seed = resolve(op.getRng(), {context.constant(0)});
  Node *counter = resolve(op.getRng(), {context.constant(1)});
  if (!seed || !counter)
    return nullptr;
  Node *node = newNode(Node::Kind::Random, tensorType(op.getResult()).getElementType(), op);
  node->operands = {seed, counter};
  if (op.getNumbers()) {
    Node *number = resolve(op.getNumbers(), indices);
    if (!number)
      return nullptr;
    node->operands.push_back(number);
    node->index = context.constant(op.getFirst());
    return node;
  }
  node->index = context.scale(context.linearize(indices, shape), 1, op.getFirst());
  return node;
}

/// Appends the condition unless bounds decide it; false when it never holds.
static bool addCondition(IndexContext &context, SmallVectorImpl<Condition> &conditions, Index expr,
                         int64_t low, int64_t high) {
  IndexRange bounds = context.range(expr);
  if (bounds.high < low || bounds.low > high)
    return false;
  if (bounds.low < low || bounds.high > high)
    conditions.push_back({expr, low, high});
  return true;
}

Node *BodyGraph::buildGuard(ArrayRef<Condition> conditions, Node *inside, Node *outside) {
  if (!inside || !outside)
    return nullptr;
  if (conditions.empty())
    return inside;
  Node *node = newNode(Node::Kind::Guard, inside->type);
  node->operands = {inside, outside};
  node->conditions.assign(conditions.begin(), conditions.end());
  finish(*node);
  return node;
}

Node *BodyGraph::buildPad(ds::PadOp op, ArrayRef<Index> indices) {
  RankedTensorType from = tensorType(op.getInput());
  SmallVector<Condition> conditions;
  SmallVector<Index> inner;
  Node *zero = buildZero(from.getElementType());
  for (auto [index, offset, stride, size] :
       llvm::zip_equal(indices, op.getOffsets(), op.getStrides(), from.getShape())) {
    Index moved = context.scale(index, 1, -offset);
    if (size == 0 || !addCondition(context, conditions, context.mod(moved, stride), 0, 0))
      return zero;
    Index source = context.floorDiv(moved, stride);
    if (!addCondition(context, conditions, source, 0, size - 1))
      return zero;
    // Outside the window any element will do: its value is not used, only its address must be good.
    inner.push_back(context.clamp(source, 0, size - 1));
  }
  return buildGuard(conditions, resolve(op.getInput(), inner), zero);
}

Node *BodyGraph::buildConcat(ds::ConcatOp op, ArrayRef<Index> indices) {
  unsigned dim = op.getDim();
  Node *rest = nullptr;
  int64_t end = tensorType(op.getResult()).getDimSize(dim);
  for (Value input : llvm::reverse(op.getInputs())) {
    int64_t size = tensorType(input).getDimSize(dim), start = end - size;
    end = start;
    SmallVector<Condition> conditions;
    if (size == 0 || !addCondition(context, conditions, indices[dim], start, start + size - 1))
      continue;
    SmallVector<Index> inner(indices);
    inner[dim] = context.clamp(context.scale(indices[dim], 1, -start), 0, size - 1);
    Node *piece = resolve(input, inner);
    if (!piece)
      return nullptr;
    rest = rest ? buildGuard(conditions, piece, rest) : piece;
    if (conditions.empty())
      break;
  }
  return rest ? rest : buildZero(tensorType(op.getResult()).getElementType());
}

Node *BodyGraph::buildReduce(ds::ReduceOp op, ArrayRef<Index> indices) {
  RankedTensorType from = tensorType(op.getInput());
  if (op.getDims().empty())
    return resolve(op.getInput(), indices);
  SmallVector<int64_t> reducedShape;
  for (int64_t dim : op.getDims())
    reducedShape.push_back(from.getDimSize(dim));
  if (!from.hasStaticShape() || product(reducedShape) != product(space.sizesOf(true)))
    return fail("reductions over different numbers of elements");
  for (Index index : indices)
    if (index->dims & space.reduced)
      return fail("a reduction for every element of another reduction");
  SmallVector<Index> reducedIndices = context.delinearize(positionOf(context, space, true), reducedShape);
  SmallVector<Index> full;
  unsigned nextKept = 0, nextReduced = 0;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    full.push_back(llvm::is_contained(op.getDims(), dim) ? reducedIndices[nextReduced++]
                                                         : indices[nextKept++]);
  Node *input = resolve(op.getInput(), full);
  if (!input)
    return nullptr;
  Node *node = newNode(Node::Kind::Reduce, from.getElementType(), op);
  node->operands = {input};
  return node;
}

bool isHeavy(const Node &node) {
  return node.kind == Node::Kind::Random || (node.op && node.op->hasTrait<OpTrait::HeavyBody>());
}

} // namespace mlir::ds::codegen
