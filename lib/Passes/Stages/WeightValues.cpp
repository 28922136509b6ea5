//===- WeightValues.cpp - What is made of parameters alone, in both halves ----------===//
#include "WeightValues.h"

#include "Buffers/CopyCommands.h"
#include "SegmentParts.h"
#include "Support/Exchanges.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/ScheduledFunction.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
/// The commands of one segment, by what they touch.
class WeightValues {
public:
  explicit WeightValues(func::FuncOp func);

  /// Makes them once more for what is behind forward.
  void remake();

private:
  bool isOfWeights(Value root);
  bool isParameter(BlockArgument argument) const;
  Value copyOf(Value root);
  Value onCopy(Value buffer);

  func::FuncOp func;
  DenseMap<Value, SmallVector<Operation *>> writers; ///< by root
  DenseMap<Value, bool> known;                       ///< whether a root is made of parameters alone
  IRMapping copies;                                  ///< of roots
  std::optional<OpBuilder> builder;                  ///< where copies are made
};
} // namespace

WeightValues::WeightValues(func::FuncOp func) : func(func) {
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
    for (const BufferAccess &access : accessesOf(command))
      if (access.isWrite)
        writers[access.root].push_back(command);
}

/// Whether `argument` holds parameters that nothing but the update changes.
bool WeightValues::isParameter(BlockArgument argument) const {
  FlatSymbolRefAttr name = getStateOf(func, argument);
  auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(func, name) : StateOp();
  auto written = writers.find(argument);
  return state && state.getRole() == Role::Parameter &&
         (written == writers.end() ||
          llvm::all_of(written->second, [](Operation *op) { return getWork(op) == Work::Update; }));
}

bool WeightValues::isOfWeights(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return isParameter(argument);
  auto [entry, isNew] = known.try_emplace(root, false);
  ArrayRef<Operation *> makers = writers[root];
  if (!isNew || makers.size() != 1 || !isForward(makers.front()) || isMessage(makers.front()))
    return entry->second;
  SmallVector<BufferAccess> accesses = accessesOf(makers.front());
  size_t numWritten = 0;
  bool isMade = false;
  for (const BufferAccess &access : accesses) {
    numWritten += access.isWrite;
    isMade |= access.isRead && !access.isWrite;
    if (access.isRead && (access.isWrite || !isOfWeights(access.root)))
      return false;
  }
  return known[root] = isMade && numWritten == 1;
}

/// `buffer`, a root that is made of parameters alone or a view of one, as it is made once more.
Value WeightValues::onCopy(Value buffer) {
  return onOtherRoot(
      buffer, [&](Value root) { return isa<BlockArgument>(root) ? root : copyOf(root); }, *builder);
}

Value WeightValues::copyOf(Value root) {
  if (Value copy = copies.lookupOrNull(root))
    return copy;
  Operation *maker = writers[root].front();
  IRMapping mapping;
  for (Value operand : maker->getOperands())
    if (rootOfBuffer(operand) != root)
      mapping.map(operand, onCopy(operand));
  Operation *alloc = builder->clone(*root.getDefiningOp());
  copies.map(root, alloc->getResult(0));
  for (Value operand : maker->getOperands())
    if (rootOfBuffer(operand) == root)
      mapping.map(operand, onCopy(operand));
  setWork(alloc, Work::Backward);
  setWork(builder->clone(*maker, mapping), Work::Backward);
  return alloc->getResult(0);
}

void WeightValues::remake() {
  SmallVector<Operation *> readers;
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>())
    if (isBehindForward(command))
      readers.push_back(command);
  for (Operation *command : readers)
    for (OpOperand &operand : command->getOpOperands()) {
      Value buffer = operand.get();
      Value root = isa<BufferType>(buffer.getType()) ? rootOfBuffer(buffer) : Value();
      if (!root || !root.getDefiningOp<AllocOp>() || !isOfWeights(root))
        continue;
      builder.emplace(command); // the first that reads it
      operand.set(onCopy(buffer));
    }
}

void mlir::ds::remakeWeightValues(func::FuncOp func) { WeightValues(func).remake(); }
