//===- HostActivations.cpp - Keeps on the host what backward reads later -----------===//
#include "HostActivations.h"

#include "SegmentMemory.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

namespace {
class HostMover {
public:
  HostMover(func::FuncOp func, const DenseSet<Value> &values) : func(func), values(values) {}
  void run();

private:
  StoreOp store(Value value, Operation *reader);
  Value bringBack(Value value, Operation *reader);

  func::FuncOp func;
  const DenseSet<Value> &values;
  DenseMap<Value, Value> copies; ///< of the values and of their views, on the device again
};
} // namespace

/// The last reader in forward of `value` and its views; its maker where there is none.
static Operation *findLastReader(Value value) {
  Operation *last = value.getDefiningOp();
  for (Operation *reader : value.getUsers()) {
    if (!isForward(reader) || reader->hasTrait<OpTrait::IsTerminator>())
      continue;
    if (formOf(reader) == OpForm::View)
      for (Value view : reader->getResults())
        if (Operation *later = findLastReader(view); last->isBeforeInBlock(later))
          last = later;
    if (last->isBeforeInBlock(reader))
      last = reader;
  }
  return last;
}

/// Puts `value` on the host once forward is done with it; null where `reader` comes before that.
StoreOp HostMover::store(Value value, Operation *reader) {
  Operation *last = findLastReader(value);
  if (!last->isBeforeInBlock(reader))
    return {};
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfter(last);
  auto type = StoredType::get(func.getContext(), tensorType(value), Space::Host);
  auto op = builder.create<StoreOp>(value.getLoc(), type, value);
  copyWork(value.getDefiningOp(), op);
  return op;
}

/// What `reader` reads instead of `value`.
Value HostMover::bringBack(Value value, Operation *reader) {
  if (Value known = copies.lookup(value))
    return known;
  Operation *maker = value.getDefiningOp();
  if (!maker || !isForward(maker))
    return value;
  OpBuilder builder(reader);
  if (values.contains(value)) {
    StoreOp stored = store(value, reader);
    if (!stored)
      return copies[value] = value;
    auto load = builder.create<LoadOp>(value.getLoc(), tensorType(value), stored);
    copyWork(maker, load);
    setWork(load, Work::Recompute);
    return copies[value] = load;
  }
  if (formOf(maker) != OpForm::View)
    return value;
  Value operand = bringBack(maker->getOperand(0), reader);
  if (operand == maker->getOperand(0))
    return value;
  Operation *view = builder.clone(*maker);
  view->setOperand(0, operand);
  if (needsWork(view))
    setWork(view, Work::Recompute);
  for (auto [of, copy] : llvm::zip_equal(maker->getResults(), view->getResults()))
    copies[of] = copy;
  return copies.lookup(value);
}

void HostMover::run() {
  SmallVector<Operation *> readers;
  for (Operation &op : func.getBody().front().without_terminator())
    if (!isForward(&op))
      readers.push_back(&op);
  for (Operation *reader : readers)
    for (OpOperand &operand : reader->getOpOperands())
      operand.set(bringBack(operand.get(), reader));
}

void mlir::ds::keepOnHost(func::FuncOp func, const DenseSet<Value> &values) {
  if (!values.empty())
    HostMover(func, values).run();
}
