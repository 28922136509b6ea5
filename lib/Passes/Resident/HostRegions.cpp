//===- HostRegions.cpp - Which ops that run on the host do so together ----------------===//
//
// See HostRegions.h for the problem and the idea.
//
//===---------------------------------------------------------------------------------===//
#include "HostRegions.h"

#include "Support/Exchanges.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;

namespace {
/// What changes between levels.
enum class Side { Device, Tensors, Scalars };

class RegionFinder {
public:
  RegionFinder(Block &block, const HostPlacement &placement) : block(block), placement(placement) {}
  SmallVector<SmallVector<Operation *>> run();

private:
  Side sideOf(Operation *op) const;
  void findLevels();
  void delay();
  void findWaiting();
  void tie();

  Block &block;
  const HostPlacement &placement;
  SmallVector<Operation *> hosted; ///< in block order
  DenseMap<Operation *, unsigned> level;
  DenseSet<Operation *> waiting; ///< for what is computed of data, where something is presumed of that
  llvm::EquivalenceClasses<Operation *> tied;
};
} // namespace

static bool isScalar(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getRank() == 0;
}

Side RegionFinder::sideOf(Operation *op) const {
  if (!placement.isOnHost(op))
    return Side::Device;
  return isScalar(op->getResult(0)) ? Side::Scalars : Side::Tensors;
}

/// The op that is not free and from which `value` comes; null for arguments and constants.
static Operation *makerOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && HostPlacement::isFree(op))
    op = op->getNumOperands() == 0 ? nullptr : op->getOperand(0).getDefiningOp();
  return op;
}

/// The least levels. What meets other stages comes behind what met them before, which no operand says.
void RegionFinder::findLevels() {
  unsigned met = 0;
  for (Operation &op : block) {
    if (HostPlacement::isFree(&op))
      continue;
    unsigned &own = level[&op] = 0;
    for (Value operand : op.getOperands())
      if (Operation *maker = makerOf(operand))
        own = std::max(own, level.lookup(maker) + (sideOf(maker) != sideOf(&op)));
    if (meetsStages(&op))
      met = own = std::max(own, met);
    if (placement.isOnHost(&op))
      hosted.push_back(&op);
  }
}

/// What only the host reads is computed where that is: nothing is kept for it.
void RegionFinder::delay() {
  for (Operation *op : llvm::reverse(hosted)) {
    unsigned latest = UINT_MAX;
    HostPlacement::forEachReader(op->getResult(0), [&](Operation *reader) {
      bool isHere = placement.isOnHost(reader);
      latest =
          std::min(latest, isHere ? level.lookup(reader) - (sideOf(reader) != sideOf(op)) : level.lookup(op));
    });
    if (latest != UINT_MAX)
      level[op] = std::max(level.lookup(op), latest);
  }
}

/// Finds the scalars that need some tensor.
void RegionFinder::findWaiting() {
  if (block.getOps<PresumeOp>().empty())
    return;
  auto waits = [&](Value operand) {
    Operation *maker = operand.getDefiningOp();
    return !isScalar(operand) || (maker && waiting.contains(maker));
  };
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::ConstantLike>() && llvm::any_of(op.getOperands(), waits))
      waiting.insert(&op);
}

/// Ties ops of a level: scalars all, but for those that an update which does not wait for the norm can have
/// before it; tensors where one reads what the other makes, or both read one tensor.
void RegionFinder::tie() {
  std::map<std::pair<unsigned, bool>, Operation *> scalars;
  llvm::MapVector<std::pair<Value, unsigned>, Operation *> readers;
  for (Operation *op : hosted) {
    tied.insert(op);
    if (sideOf(op) == Side::Scalars) {
      std::pair<unsigned, bool> place(level.lookup(op), waiting.contains(op));
      tied.unionSets(op, scalars.try_emplace(place, op).first->second);
      continue;
    }
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (isScalar(operand) || (maker && HostPlacement::isFree(maker)))
        continue;
      if (maker && sideOf(maker) == Side::Tensors && level.lookup(maker) == level.lookup(op))
        tied.unionSets(op, maker);
      tied.unionSets(op, readers.insert({{operand, level.lookup(op)}, op}).first->second);
    }
  }
}

SmallVector<SmallVector<Operation *>> RegionFinder::run() {
  findLevels();
  delay();
  findWaiting();
  tie();
  llvm::MapVector<Operation *, SmallVector<Operation *>> regions;
  for (Operation *op : hosted)
    regions[tied.getLeaderValue(op)].push_back(op);
  return llvm::map_to_vector(regions, [](auto &region) { return region.second; });
}

SmallVector<SmallVector<Operation *>> mlir::ds::findHostRegions(Block &block,
                                                                const HostPlacement &placement) {
  return RegionFinder(block, placement).run();
}
