//===- FormRegions.cpp - Makes a ds.fused of ops of a block ----------------------===//
#include "FormRegions.h"

#include "Support/Exchanges.h"
#include "ds/Dialect/Work.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

#include <functional>
#include <queue>

using namespace mlir;
using namespace mlir::ds;

/// True when an op outside `members` reads `value`, directly or through ops that it will copy.
static bool isReadOutside(Value value, const DenseSet<Operation *> &members, const CopiedOps &copied) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (members.contains(user))
      return false;
    return !copied.contains(user) || isReadOutside(user->getResult(0), members, copied);
  });
}

namespace {
/// Copies a cluster into the body of its region.
struct BodyBuilder {
  OpBuilder builder;
  IRMapping mapping;
  llvm::SmallSetVector<Value, 8> inputs;
  const CopiedOps &copied;

  /// Makes `value` available: as a copy of the free op that gives it, or as a region argument.
  void import(Value value, Block *body) {
    if (mapping.contains(value))
      return;
    Operation *producer = value.getDefiningOp();
    if (producer && copied.contains(producer)) {
      for (Value operand : producer->getOperands())
        import(operand, body);
      clearWork(builder.clone(*producer, mapping));
      return;
    }
    inputs.insert(value);
    mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
  }
};
} // namespace

/// Removes `op` and the copied ops that only it still fed.
static void eraseWithReaders(Operation *op, CopiedOps &copied) {
  while (!op->use_empty()) {
    Operation *user = *op->user_begin();
    assert(copied.contains(user) && "a member's value is still read");
    eraseWithReaders(user, copied);
  }
  copied.erase(op);
  op->erase();
}

/// Lets `fused` say the layer of the last of `ops`, in whose place it stands, and the earliest work of all:
/// it runs when that is done, though not before what it reads is made.
static void markRegion(FusedOp fused, ArrayRef<Operation *> ops) {
  copyWork(ops.back(), fused);
  std::optional<Work> earliest = getWork(fused);
  for (Operation *op : ops)
    if (std::optional<Work> work = getWork(op); work && (!earliest || isBefore(*work, *earliest)))
      earliest = work;
  for (Value input : fused.getInputs())
    if (Operation *maker = input.getDefiningOp())
      if (std::optional<Work> work = getWork(maker); work && earliest && isBefore(*earliest, *work))
        earliest = work;
  if (earliest)
    setWork(fused, *earliest);
}

/// Lets `fused`, of constants alone, say the earliest work that reads it, be it through views; where it only
/// leaves the segment, the last that this does.
static void markByReaders(FusedOp fused) {
  std::optional<Work> earliest;
  SmallVector<Operation *> pending(fused->user_begin(), fused->user_end());
  while (!pending.empty()) {
    Operation *reader = pending.pop_back_val();
    std::optional<Work> work = getWork(reader);
    if (!work)
      pending.append(reader->user_begin(), reader->user_end());
    else if (!earliest || isBefore(*work, *earliest))
      earliest = work;
  }
  auto func = dyn_cast<func::FuncOp>(fused->getParentOp());
  SegmentAttr segment = func ? SegmentAttr::of(func) : SegmentAttr();
  if (!earliest && segment)
    earliest = segment.does(Work::Evaluation) ? Work::Forward : segment.getWorks().back();
  if (earliest)
    setWork(fused, *earliest);
}

/// Lets `fused` say of which layers its results are, where that is not the one that it says of itself. What
/// is in a region of the host says nothing.
static void markLayers(FusedOp fused, ArrayRef<Value> outputs) {
  if (isa<HostOp>(fused->getParentOp()))
    return;
  Attribute own = fused->getAttr(DsDialect::kLayerAttr), none = UnitAttr::get(fused.getContext());
  SmallVector<Attribute> layers = llvm::map_to_vector(outputs, [&](Value output) -> Attribute {
    LayerAttr layer = LayerAttr::of(output.getDefiningOp());
    return layer ? Attribute(layer) : none;
  });
  if (llvm::any_of(layers, [&](Attribute layer) { return layer != (own ? own : none); }))
    fused->setAttr(DsDialect::kLayersAttr, ArrayAttr::get(fused.getContext(), layers));
}

void mlir::ds::formRegion(ArrayRef<Operation *> ops, CopiedOps &copied) {
  DenseSet<Operation *> members(ops.begin(), ops.end());
  Operation *last = ops.back();
  SmallVector<Value> outputs;
  for (Operation *op : ops)
    if (isReadOutside(op->getResult(0), members, copied))
      outputs.push_back(op->getResult(0));

  auto region = std::make_unique<Region>();
  Block *body = &region->emplaceBlock();
  BodyBuilder build{OpBuilder(last->getContext()), {}, {}, copied}; // the region has no parent to ask yet
  build.builder.setInsertionPointToEnd(body);
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      build.import(operand, body);
    clearWork(build.builder.clone(*op, build.mapping));
  }
  SmallVector<Value> yielded =
      llvm::map_to_vector(outputs, [&](Value value) { return build.mapping.lookup(value); });
  build.builder.create<YieldOp>(last->getLoc(), yielded);

  OpBuilder builder(last);
  SmallVector<Type> types = llvm::map_to_vector(outputs, [](Value value) { return value.getType(); });
  auto fused = builder.create<FusedOp>(last->getLoc(), types, build.inputs.getArrayRef());
  fused.getBody().takeBody(*region);
  markRegion(fused, ops);
  markLayers(fused, outputs);
  for (auto [output, result] : llvm::zip_equal(outputs, fused.getResults()))
    output.replaceAllUsesWith(result);
  if (!getWork(fused))
    markByReaders(fused);
  for (Operation *op : llvm::reverse(ops))
    eraseWithReaders(op, copied);
}

namespace {
/// An op of a block that is to be sorted.
struct SortedOp {
  Operation *op;
  SmallVector<unsigned> readers; ///< once for each use
  unsigned openUses = 0;         ///< of values whose makers are not sorted yet
};
} // namespace

/// The ops of `block` but its terminator, in order, with who reads whom.
static std::vector<SortedOp> findReaders(Block &block) {
  std::vector<SortedOp> ops;
  DenseMap<Operation *, unsigned> position;
  for (Operation &op : block.without_terminator()) {
    position[&op] = ops.size();
    ops.push_back({&op, {}});
  }
  std::optional<unsigned> meeting; // the last one with other stages, which the next one has to follow
  for (auto [index, sorted] : llvm::enumerate(ops)) {
    if (meetsStages(sorted.op)) {
      if (meeting) {
        ops[*meeting].readers.push_back(index);
        ++sorted.openUses;
      }
      meeting = index;
    }
    sorted.op->walk([&, reader = unsigned(index)](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        maker = maker ? block.findAncestorOpInBlock(*maker) : nullptr;
        auto known = maker ? position.find(maker) : position.end();
        if (known != position.end() && known->second != reader) {
          ops[known->second].readers.push_back(reader);
          ++ops[reader].openUses;
        }
      }
    });
  }
  return ops;
}

LogicalResult mlir::ds::sortStably(Block &block) {
  std::vector<SortedOp> ops = findReaders(block);
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>> ready;
  for (unsigned index = 0; index < ops.size(); ++index)
    if (ops[index].openUses == 0)
      ready.push(index);
  SmallVector<Operation *> sorted;
  while (!ready.empty()) {
    const unsigned index = ready.top();
    ready.pop();
    sorted.push_back(ops[index].op);
    for (unsigned reader : ops[index].readers)
      if (--ops[reader].openUses == 0)
        ready.push(reader);
  }
  if (sorted.size() < ops.size()) {
    auto isOpen = [](const SortedOp &op) { return op.openUses > 0; };
    auto isStuck = [&](const SortedOp &op) { return isOpen(op) && isa<FusedOp>(op.op); };
    auto stuck = llvm::find_if(ops, isStuck);
    if (stuck == ops.end())
      stuck = llvm::find_if(ops, isOpen);
    return stuck->op->emitOpError("expects ops that can run one after the other, but got a circle of them");
  }
  for (Operation *op : sorted)
    op->moveBefore(&block, block.getTerminator()->getIterator());
  return success();
}
