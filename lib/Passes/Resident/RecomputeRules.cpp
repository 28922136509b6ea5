//===- RecomputeRules.cpp - Which ops of forward backward may run again ----------------===//
#include "RecomputeRules.h"

#include "SegmentMemory.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isCheap(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() != FusionKind::Reduction;
}

namespace {
/// Follows what one function's forward carries from op to op.
class Carried {
public:
  explicit Carried(func::FuncOp func);
  SmallVector<Value> findNarrow() const;

private:
  /// Whether the op makes of states, be it by way of others. What is made of inputs alone connects nothing:
  /// they are there all the time.
  bool isMade(Operation &op) const;
  /// Whether the op makes of activations: it is more than cheap, or reads such a value.
  bool isDeep(Operation &op) const;

  func::FuncOp func;
  SmallVector<Operation *> ops;
  DenseSet<Value> made; ///< of states
  DenseSet<Value> deep;
  DenseMap<Value, unsigned> last; ///< root -> position of its last reader in forward
};
} // namespace

bool Carried::isMade(Operation &op) const {
  return llvm::any_of(op.getOperands(), [&](Value operand) {
    return getStateOf(func, rootOf(operand)) || made.contains(rootOf(operand));
  });
}

bool Carried::isDeep(Operation &op) const {
  // A mask of positions alone is no activation, whatever makes it.
  if (!isMade(op) || isBroughtAgain(&op))
    return false;
  return !isCheap(&op) ||
         llvm::any_of(op.getOperands(), [&](Value operand) { return deep.contains(rootOf(operand)); });
}

Carried::Carried(func::FuncOp func) : func(func) {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (formOf(&op) == OpForm::View || !isForward(&op))
      continue;
    for (Value operand : op.getOperands())
      last[rootOf(operand)] = ops.size();
    ops.push_back(&op);
    if (isMade(op))
      made.insert(op.getResults().begin(), op.getResults().end());
    if (isDeep(op))
      deep.insert(op.getResults().begin(), op.getResults().end());
  }
}

SmallVector<Value> Carried::findNarrow() const {
  SmallVector<Value> narrow;
  SmallVector<Value> alive;
  for (unsigned at = 0; at < ops.size(); ++at) {
    llvm::erase_if(alive, [&](Value value) { return last.lookup(value) <= at; });
    for (Value result : ops[at]->getResults())
      if (deep.contains(result) && last.lookup(result) > at)
        alive.push_back(result);
    if (alive.size() == 1 && tensorType(alive.front()).getRank() > 0 &&
        (narrow.empty() || narrow.back() != alive.front()))
      narrow.push_back(alive.front());
  }
  return narrow;
}

SmallVector<Value> mlir::ds::findNarrowValues(func::FuncOp func) { return Carried(func).findNarrow(); }

/// The numbered layer that `value` is made in, by stack and number.
static std::optional<std::pair<StringRef, int64_t>> blockOf(Value value) {
  LayerAttr layer = LayerAttr::of(value.getDefiningOp());
  return layer ? layer.getBlock() : std::nullopt;
}

SmallVector<Value> mlir::ds::findLayerEnds(ArrayRef<Value> narrow) {
  auto blocks = llvm::map_to_vector(narrow, blockOf);
  if (llvm::none_of(blocks, [](const auto &block) { return block.has_value(); }))
    return SmallVector<Value>(narrow);
  SmallVector<Value> ends;
  for (size_t index = 0; index < narrow.size(); ++index)
    if (index + 1 == narrow.size() || blocks[index] != blocks[index + 1])
      ends.push_back(narrow[index]);
  // What comes after the last layer is read at once.
  while (!blockOf(ends.back()))
    ends.pop_back();
  return ends;
}

RecomputeRules RecomputeRules::nothing() {
  RecomputeRules rules;
  rules.extent = Extent::Nothing;
  return rules;
}

RecomputeRules RecomputeRules::between(ArrayRef<Value> borders) {
  RecomputeRules rules;
  rules.extent = Extent::Groups;
  for (Value border : borders)
    rules.borders.insert(rules.last = border.getDefiningOp());
  return rules;
}

RecomputeRules RecomputeRules::demanded(ArrayRef<Value> borders, ArrayRef<int64_t> layers) {
  RecomputeRules rules = between(borders);
  rules.isDemanded = true;
  rules.layers.insert(layers.begin(), layers.end());
  return rules;
}

RecomputeRules RecomputeRules::named(ArrayRef<std::string> names) {
  RecomputeRules rules;
  rules.extent = Extent::Named;
  rules.isDemanded = true;
  for (const std::string &name : names)
    rules.names.insert(name);
  return rules;
}

/// The number of the layer that `op` is part of, or nothing.
static std::optional<int64_t> numberOf(Operation *op) {
  LayerAttr layer = LayerAttr::of(op);
  return layer ? layer.getNumber() : std::nullopt;
}

/// Whether a group that is recomputed has `op`.
bool RecomputeRules::isInReach(Operation *op) const {
  if (borders.contains(op) || !last || !op->isBeforeInBlock(last))
    return false;
  std::optional<int64_t> number = layers.empty() ? std::nullopt : numberOf(op);
  return layers.empty() || (number && layers.contains(*number));
}

/// Whether `op` gives the same whenever it runs. What ranks exchange for layers they exchange again where
/// each of them computes it again.
static bool isRecomputable(Operation *op) {
  if (isExchange(op))
    return op->getNumResults() == 1;
  return isPure(op) && op->getNumRegions() == 0 && isa<FusableOpInterface, LibraryOpInterface>(op) &&
         !isa<CollectiveOpInterface>(op);
}

bool RecomputeRules::mayRecompute(Operation *op) const {
  if (isCheap(op))
    return extent != Extent::Nothing && !borders.contains(op);
  switch (extent) {
  case Extent::Nothing:
  case Extent::Cheap:
    return false;
  case Extent::Named:
    return isRecomputable(op) && isNamed(op);
  case Extent::Groups:
    return isRecomputable(op) && isInReach(op);
  }
  llvm_unreachable("all extents are listed");
}

bool RecomputeRules::isForced(Operation *op) const {
  if (!isDemanded || !mayRecompute(op))
    return false;
  return extent == Extent::Named ? isNamed(op) : isInReach(op);
}

bool RecomputeRules::isNamed(Operation *op) const { return names.contains(op->getName().stripDialect()); }

LogicalResult mlir::ds::verifyDemands(ModuleOp module, const RecomputeOptions &demanded) {
  std::set<std::string> ops;
  std::set<int64_t> layers;
  for (auto func : module.getOps<func::FuncOp>())
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (!isForward(&op) || !isRecomputable(&op))
        continue;
      ops.insert(op.getName().stripDialect().str());
      if (std::optional<int64_t> number = numberOf(&op))
        layers.insert(*number);
    }
  for (const std::string &name : demanded.ops)
    if (!ops.count(name)) {
      InFlightDiagnostic error = module.emitError()
                                 << "forward has no op \"" << name << "\" to be recomputed; it has ";
      llvm::interleaveComma(ops, error);
      return error;
    }
  for (int64_t number : demanded.layers)
    if (!layers.count(number)) {
      InFlightDiagnostic error = module.emitError()
                                 << "forward has no layer " << number << " to be recomputed";
      if (!layers.empty())
        error << "; it has " << *layers.begin() << " to " << *layers.rbegin();
      return error;
    }
  return success();
}
