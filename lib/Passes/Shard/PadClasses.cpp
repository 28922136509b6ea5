//===- PadClasses.cpp - Classes that ranks do not divide ------------------------------===//
#include "PadClasses.h"
#include "SegmentStates.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Sharding.h"
#include "ds/Dialect/Work.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// All values and states that have one set of classes as a dimension.
class ClassDimensions {
public:
  ClassDimensions(ModuleOp module, int64_t classes) : module(module), symbols(module), classes(classes) {}

  /// Follows the classes of `logits` to all that has them. False where padding is not possible.
  bool follow(Value logits);
  /// Makes all that was found `padded` long.
  void grow(int64_t padded);

private:
  bool add(Value value, int64_t dim);
  bool addState(StringAttr name, int64_t dim);
  bool visit(Operation *op, Value value, int64_t dim);
  bool visitLoss(Operation *op, Value value);

  ModuleOp module;
  SymbolTable symbols;
  int64_t classes;
  llvm::MapVector<Value, int64_t> found;                 ///< dimension by value
  llvm::MapVector<StringAttr, int64_t> states;           ///< and by state
  SmallVector<std::pair<OpOperand *, int64_t>> returned; ///< by segments, as no state
  SmallVector<Value> open;
};
} // namespace

bool ClassDimensions::add(Value value, int64_t dim) {
  auto [known, isNew] = found.insert({value, dim});
  if (isNew)
    open.push_back(value);
  return known->second == dim;
}

/// A state with classes in its rows, in every segment that has it, with all that belongs to its parameter.
bool ClassDimensions::addState(StringAttr name, int64_t dim) {
  auto state = symbols.lookup<StateOp>(name);
  if (!state || dim != 0 || state.getView() || state.getTied()) // the other stage does not see the classes
    return false;
  StringAttr owner = state.getOwnerAttr() ? state.getOwnerAttr().getAttr() : name;
  if (!states.insert({owner, dim}).second)
    return true;
  for (auto func : module.getOps<func::FuncOp>()) {
    SegmentStates segment(func);
    auto isOfOwner = [&](StringAttr of) {
      auto other = of ? symbols.lookup<StateOp>(of) : StateOp();
      return other && (of == owner || (other.getOwnerAttr() && other.getOwnerAttr().getAttr() == owner));
    };
    for (BlockArgument argument : segment.getBody().getArguments())
      if (isOfOwner(segment.nameOf(argument)) && !add(argument, dim))
        return false;
    for (OpOperand &result : segment.getTerminator()->getOpOperands())
      if (isOfOwner(segment.nameOfResult(result.getOperandNumber())) && !add(result.get(), dim))
        return false;
    for (auto update : segment.getBody().getOps<UpdateOp>())
      if (update.getParameterAttr().getAttr() == owner && !add(update.getGradient(), dim))
        return false;
  }
  return true;
}

bool ClassDimensions::visitLoss(Operation *op, Value value) {
  if (op->getOperand(0) != value && !llvm::is_contained(op->getResults(), value))
    return false;
  for (Value result : op->getResults())
    if (result.getType() == op->getOperand(0).getType() && !add(result, 1))
      return false;
  return add(op->getOperand(0), 1);
}

/// Sums and extremes over classes see padding; what else reads them has one place for each.
bool ClassDimensions::visit(Operation *op, Value value, int64_t dim) {
  if (isa<CrossEntropyOp, CrossEntropyGradOp, CrossEntropyWithGradOp>(op))
    return visitLoss(op, value);
  if (isa<UpdateOp, SumOfSquaresOp>(op))
    return true; // the update's own values are states
  auto sharding = dyn_cast<ShardingOpInterface>(op);
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!sharding || (reduce && reduce.getInput() == value && llvm::is_contained(reduce.getDims(), dim)))
    return false;
  const ShardingRule rule = sharding.getShardingRule();
  for (const ShardingFactor &factor : rule.factors) {
    auto isHere = [&](Value other, const FactorDim &place) {
      return other == value && place.dim == dim && place.blocks == Blocks() && factor.size == classes;
    };
    bool isOf = false, isRight = true;
    for (auto [other, place] : llvm::zip_equal(op->getOperands(), factor.operands))
      isOf |= isHere(other, place);
    for (auto [other, place] : llvm::zip_equal(op->getResults(), factor.results))
      isOf |= isHere(other, place);
    if (!isOf)
      continue;
    auto addPlace = [&](Value other, const FactorDim &place) {
      isRight &= !place.has() || (place.blocks == Blocks() && add(other, place.dim));
    };
    for (auto [other, place] : llvm::zip_equal(op->getOperands(), factor.operands))
      addPlace(other, place);
    for (auto [other, place] : llvm::zip_equal(op->getResults(), factor.results))
      addPlace(other, place);
    return isRight;
  }
  return false;
}

bool ClassDimensions::follow(Value logits) {
  if (!add(logits, 1))
    return false;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    const int64_t dim = found.lookup(value);
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      SegmentStates segment(cast<func::FuncOp>(argument.getOwner()->getParentOp()));
      StringAttr name = segment.nameOf(argument);
      if (!name || !addState(name, dim))
        return false;
    } else if (!visit(value.getDefiningOp(), value, dim)) {
      return false;
    }
    for (OpOperand &use : value.getUses()) {
      if (!use.getOwner()->hasTrait<OpTrait::IsTerminator>()) {
        if (!visit(use.getOwner(), value, dim))
          return false;
        continue;
      }
      SegmentStates segment(cast<func::FuncOp>(use.getOwner()->getParentOp()));
      if (StringAttr name = segment.nameOfResult(use.getOperandNumber())) {
        if (!addState(name, dim))
          return false;
      } else {
        returned.push_back({&use, dim});
      }
    }
  }
  return true;
}

/// A type whose dimension `dim` is `size`.
static RankedTensorType resized(Type type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, cast<RankedTensorType>(type).getElementType());
}

/// An update's body on values of the types that its operands have now.
static void rebuildBody(UpdateOp update) {
  Block &body = update.getBody().front();
  const auto shape = tensorType(update.getGradient()).getShape();
  for (Operation &op : body)
    for (Value result : op.getResults())
      if (RankedTensorType type = tensorType(result); type.getRank() > 0) {
        auto grown = RankedTensorType::get(shape, type.getElementType());
        if (auto constant = dyn_cast<ConstantOp>(op))
          constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(grown));
        result.setType(grown);
      }
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), update->getOperands()))
    argument.setType(operand.getType());
}

void ClassDimensions::grow(int64_t padded) {
  for (auto &[use, dim] : returned) {
    Value whole = use->get();
    const auto type = cast<RankedTensorType>(whole.getType());
    OpBuilder builder(use->getOwner());
    SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
    auto slice = builder.create<SliceOp>(whole.getLoc(), type, whole, offsets, strides);
    if (Operation *maker = whole.getDefiningOp())
      copyWork(maker, slice);
    use->set(slice);
  }
  for (auto &[value, dim] : found) {
    const RankedTensorType grown = resized(value.getType(), dim, padded);
    if (auto constant = value.getDefiningOp<ConstantOp>())
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(grown));
    value.setType(grown);
  }
  for (auto state : module.getOps<StateOp>()) {
    StringAttr owner = state.getOwnerAttr() ? state.getOwnerAttr().getAttr() : state.getSymNameAttr();
    if (!states.contains(owner))
      continue;
    state.setView(SmallVector<int64_t>(resized(state.getTensorType(), 0, padded).getShape()));
    state.setExisting(classes);
  }
  for (auto func : module.getOps<func::FuncOp>()) {
    for (auto update : func.getOps<UpdateOp>())
      if (states.contains(update.getParameterAttr().getAttr()))
        rebuildBody(update);
    SegmentStates(func).finish();
  }
}

DenseMap<int64_t, int64_t> mlir::ds::padClasses(ModuleOp module, int64_t ranks) {
  llvm::MapVector<int64_t, SmallVector<Value>> losses; // by classes
  module.walk([&](Operation *op) {
    if (isa<CrossEntropyOp, CrossEntropyGradOp, CrossEntropyWithGradOp>(op))
      losses[tensorType(op->getOperand(0)).getDimSize(1)].push_back(op->getOperand(0));
  });
  DenseMap<int64_t, int64_t> existing;
  for (auto &[classes, logits] : losses) {
    constexpr int64_t kVector = 8; // elements, so that rows of 16 bits are whole vectors
    if (classes % ranks == 0)
      continue;
    ClassDimensions dimensions(module, classes);
    if (!llvm::all_of(logits, [&](Value value) { return dimensions.follow(value); }))
      continue;
    const int64_t padded = static_cast<int64_t>(llvm::alignTo(classes, ranks * kVector));
    dimensions.grow(padded);
    existing[padded] = classes;
  }
  return existing;
}
