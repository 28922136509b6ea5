//===- LayerUnits.cpp - The layers of a model, one behind the other ----------------===//
#include "LayerUnits.h"

#include "ds/Passes/ScheduledFunction.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What a value is made of, as far as it costs next to nothing to make.
struct Origins {
  bool isDear = false;     ///< it does cost
  bool hasData = false;    ///< of an input
  bool hasWeights = false; ///< of a parameter

  bool isFree() const { return !isDear && !(hasData && hasWeights); }
};
} // namespace

/// Whether `op` takes as long as reading its operands, at most, and gives the same wherever it stands.
static bool isCheap(Operation *op) {
  return isMemoryEffectFree(op) && !isa<LibraryOpInterface, RandomOpInterface>(op);
}

static Origins originsOf(func::FuncOp func, BlockArgument argument) {
  FlatSymbolRefAttr name = getStateOf(func, argument);
  auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, name) : StateOp();
  return {false, !state, state && state.getRole() == Role::Parameter};
}

LayerUnits::LayerUnits(func::FuncOp forward) : forward(forward) {
  Block &body = forward.getBody().front();
  for (Operation &op : body)
    if (LayerAttr layer = LayerAttr::of(&op))
      if (auto block = layer.getBlock())
        layers.insert({*block, unsigned(layers.size()) + 1});
  findFree(body);
  assign(body);
  assignRest(body);
}

void LayerUnits::findFree(Block &body) {
  DenseMap<Value, Origins> known;
  for (BlockArgument argument : body.getArguments())
    known[argument] = originsOf(forward, argument);
  for (Operation &op : body.without_terminator()) {
    Origins origins;
    origins.isDear = !isCheap(&op);
    for (Value operand : op.getOperands()) {
      const Origins of = known.lookup(operand);
      origins.isDear |= !of.isFree();
      origins.hasData |= of.hasData;
      origins.hasWeights |= of.hasWeights;
    }
    if (origins.isFree())
      free.insert(&op);
    for (Value result : op.getResults())
      known[result] = origins;
  }
}

/// The unit of the numbered layer that `op` says; 0 for none.
unsigned LayerUnits::ownOf(Operation *op) const {
  LayerAttr layer = LayerAttr::of(op);
  auto block = layer ? layer.getBlock() : std::nullopt;
  return block ? layers.lookup(*block) : 0;
}

void LayerUnits::assign(Block &body) {
  for (Operation &op : body) {
    if (free.contains(&op))
      continue;
    unsigned unit = ownOf(&op);
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp())
        unit = std::max(unit, units.lookup(maker));
    units[&op] = unit;
  }
}

/// What no layer reads and that reads one, or is the end of all, is behind the last.
void LayerUnits::assignRest(Block &body) {
  DenseSet<Operation *> read; // by numbered layers, however far
  for (Operation &op : llvm::reverse(body)) {
    if (free.contains(&op))
      continue;
    const bool isLayer = ownOf(&op) > 0;
    if (isLayer || read.contains(&op))
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp())
          read.insert(maker);
    if (!isLayer && !read.contains(&op))
      units[&op] = count() - 1;
  }
}

std::optional<unsigned> LayerUnits::unitOf(Operation *op) const {
  auto unit = units.find(op);
  return unit == units.end() ? std::nullopt : std::optional(unit->second);
}

std::string LayerUnits::nameOf(unsigned unit) const {
  const auto &[stack, number] = (layers.begin() + (unit - 1))->first;
  return (stack.empty() ? Twine(number) : stack + "." + Twine(number)).str();
}
