//===- RepeatRules.cpp - Which ops of forward backward may run again ----------------===//
#include "RepeatRules.h"

#include "SegmentMemory.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;

bool mlir::ds::isCheap(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() != FusionKind::Reduction;
}

/// The value that `value` is a window of.
static Value rootOf(Value value) {
  while (value.getDefiningOp() && formOf(value.getDefiningOp()) == OpForm::View)
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

namespace {
/// Follows what one function's forward carries from op to op.
class Carried {
public:
  explicit Carried(func::FuncOp func);
  SmallVector<Value> findNarrow() const;

private:
  /// Whether the op makes of activations: it is more than cheap, or reads such a value.
  bool isDeep(Operation &op) const;

  SmallVector<Operation *> ops;
  DenseSet<Value> deep;
  DenseMap<Value, unsigned> last; ///< root -> position of its last reader in forward
};
} // namespace

bool Carried::isDeep(Operation &op) const {
  if (isa<CollectiveOpInterface>(op) || op.hasTrait<OpTrait::ConstantLike>())
    return false;
  return !isCheap(&op) ||
         llvm::any_of(op.getOperands(), [&](Value operand) { return deep.contains(rootOf(operand)); });
}

Carried::Carried(func::FuncOp func) {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (formOf(&op) == OpForm::View || !isForward(&op))
      continue;
    for (Value operand : op.getOperands())
      last[rootOf(operand)] = ops.size();
    ops.push_back(&op);
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

/// The numbered layer that `layer` is or lies in: up to the first part that is a number; empty where none is.
static StringRef numberedLayer(StringRef layer) {
  for (size_t begin = 0, end; begin < layer.size(); begin = end + 1) {
    end = std::min(layer.find('.', begin), layer.size());
    StringRef part = layer.slice(begin, end);
    if (!part.empty() && llvm::all_of(part, [](char c) { return llvm::isDigit(c); }))
      return layer.take_front(end);
  }
  return {};
}

SmallVector<Value> mlir::ds::findLayerEnds(ArrayRef<Value> narrow) {
  SmallVector<std::string> layers;
  for (Value value : narrow)
    layers.push_back(numberedLayer(layerOf(value.getDefiningOp())).str());
  SmallVector<Value> ends;
  for (size_t index = 0; index < narrow.size(); ++index)
    if (index + 1 == narrow.size() || layers[index] != layers[index + 1])
      ends.push_back(narrow[index]);
  bool hasLayers = llvm::any_of(layers, [](const std::string &layer) { return !layer.empty(); });
  return hasLayers ? ends : SmallVector<Value>(narrow);
}

RepeatRules RepeatRules::between(ArrayRef<Value> borders) {
  RepeatRules rules;
  rules.extent = Extent::Groups;
  for (Value border : borders)
    rules.borders.insert(rules.last = border.getDefiningOp());
  return rules;
}

RepeatRules RepeatRules::attention() {
  RepeatRules rules;
  rules.extent = Extent::Attention;
  return rules;
}

bool RepeatRules::mayRepeat(Operation *op) const {
  if (isCheap(op))
    return !borders.contains(op);
  bool isRepeatable = isPure(op) && op->getNumRegions() == 0 &&
                      isa<FusableOpInterface, LibraryOpInterface>(op) && !isa<CollectiveOpInterface>(op);
  switch (extent) {
  case Extent::Cheap:
    return false;
  case Extent::Attention:
    return isRepeatable && isa<AttentionOp>(op);
  case Extent::Groups:
    return isRepeatable && !borders.contains(op) && last && op->isBeforeInBlock(last);
  }
  llvm_unreachable("all extents are listed");
}

bool RepeatRules::isForced(Operation *op) const {
  if (!forced || !mayRepeat(op))
    return false;
  return extent == Extent::Attention ? isa<AttentionOp>(op) : last && op->isBeforeInBlock(last);
}
