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
  Value load(Value value, Operation *reader);
  Value bringBack(Value value, Operation *reader);

  func::FuncOp func;
  const DenseSet<Value> &values;
  DenseMap<Value, Value> copies; ///< of the values and of their views, on the device again
};
} // namespace

/// The last reader in forward of `value` and its views; its maker where there is none.
static Operation *findLastReader(Value value) {
  Operation *last = value.getDefiningOp();
  SmallVector<Value> pending = {value};
  while (!pending.empty())
    for (Operation *reader : pending.pop_back_val().getUsers()) {
      if (!isForward(reader) || reader->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (formOf(reader) == OpForm::View)
        pending.append(reader->result_begin(), reader->result_end());
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

/// One of the values, for `reader`: from the host, where it is done with before that.
Value HostMover::load(Value value, Operation *reader) {
  StoreOp stored = store(value, reader);
  if (!stored)
    return value;
  auto load = OpBuilder(reader).create<LoadOp>(value.getLoc(), tensorType(value), stored);
  copyWork(value.getDefiningOp(), load);
  setWork(load, Work::Recompute);
  return load;
}

/// What `reader` reads instead of `value`: where that is a view of one of the values, a view of what is
/// loaded.
Value HostMover::bringBack(Value value, Operation *reader) {
  SmallVector<Operation *> views; // from `value` to what they are of
  Value whole = value;
  for (Operation *maker = whole.getDefiningOp(); maker && isForward(maker) && !copies.contains(whole) &&
                                                 !values.contains(whole) && formOf(maker) == OpForm::View;
       maker = whole.getDefiningOp()) {
    views.push_back(maker);
    whole = maker->getOperand(0);
  }
  if (!copies.contains(whole)) {
    if (!values.contains(whole) || !isForward(whole.getDefiningOp()))
      return value;
    copies[whole] = load(whole, reader);
  }
  for (Operation *maker : llvm::reverse(views)) {
    Value operand = copies.lookup(maker->getOperand(0));
    if (operand == maker->getOperand(0))
      return value;
    Operation *view = OpBuilder(reader).clone(*maker);
    view->setOperand(0, operand);
    if (needsWork(view))
      setWork(view, Work::Recompute);
    for (auto [of, copy] : llvm::zip_equal(maker->getResults(), view->getResults()))
      copies[of] = copy;
  }
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
