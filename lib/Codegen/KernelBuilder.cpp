//===- KernelBuilder.cpp - What the forms of CPU kernels share -----------------===//

#include "KernelBuilder.h"
#include "ReductionMath.h"
#include "mlir/IR/Matchers.h"

namespace mlir::ds::codegen {

void KernelBuilder::setDims(Value position, bool reducedOnes) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < nest.space.sizes.size(); ++dim)
    if (nest.space.isReduced(dim) == reducedOnes && nest.vectorDim != dim)
      dims.push_back(dim);
  for (size_t k = dims.size(); k-- > 0;) {
    Value size = s.constant(nest.space.sizes[dims[k]]);
    nodes.position.setDim(dims[k],
                          k == 0 ? position : b.create<arith::RemUIOp>(s.loc, position, size).getResult());
    if (k > 0)
      position = b.create<arith::DivUIOp>(s.loc, position, size);
  }
}

void KernelBuilder::overRange(Value from, Value to, llvm::function_ref<void()> write) {
  unsigned v = *nest.vectorDim;
  APInt low, high;
  bool isStatic = matchPattern(from, m_ConstantInt(&low)) && matchPattern(to, m_ConstantInt(&high));
  Value whole;
  if (isStatic) {
    whole = s.constant(low.getSExtValue() + (high - low).getSExtValue() / lanes * lanes);
  } else {
    Value count = b.create<arith::MaxSIOp>(s.loc, b.create<arith::SubIOp>(s.loc, to, from), s.constant(0));
    whole = b.create<arith::AddIOp>(s.loc, from, b.create<arith::AndIOp>(s.loc, count, s.constant(-lanes)));
  }
  bool hasWhole = !isStatic || (high - low).sge(lanes);
  bool hasRest = !isStatic || (high - low).srem(APInt(64, lanes)) != 0;
  if (hasWhole) {
    auto loop = s.beginLoop(from, whole, lanes);
    nodes.position.setDim(v, loop.iv);
    write();
    s.endLoop(loop);
  }
  if (!hasRest)
    return;
  // At most one iteration; static bounds make it straight code.
  std::optional<ScopedBuilder::Loop> rest;
  if (isStatic)
    s.beginBlock();
  else
    rest = s.beginLoop(whole, to, lanes);
  Value start = isStatic ? whole : rest->iv;
  nodes.position.setDim(v, start);
  nodes.position.setMask(0, nodes.lanes.below(start, 0, to));
  write();
  nodes.position.setMask(0, nullptr);
  if (isStatic)
    s.endBlock();
  else
    s.endLoop(*rest);
}

SmallVector<Value> KernelBuilder::neutralTotals(ArrayRef<Node *> level, int64_t copies) {
  SmallVector<Value> totals;
  for (Node *reduction : level) {
    Value neutral = b.create<arith::ConstantOp>(s.loc, neutralElement(b, reduction));
    totals.append(copies, nest.vectorDim ? nodes.lanes.splat(neutral) : neutral);
  }
  return totals;
}

void KernelBuilder::accumulate(ArrayRef<Node *> level, int64_t copies, SmallVectorImpl<Value> &totals) {
  for (auto [k, reduction] : llvm::enumerate(level)) {
    for (int64_t copy = 0; copy < copies; ++copy) {
      Value &total = totals[k * copies + copy];
      Value x = nodes.emitVector(reduction->operands[0], copy);
      x = nodes.toCompute(x, reduction->type);
      Value sum = combine(b, s.loc, reduction, total, x);
      Value mask = nest.kind == ds::KernelKind::Row ? nodes.position.maskOf(copy) : Value();
      total = mask ? b.create<arith::SelectOp>(s.loc, mask, sum, total).getResult() : sum;
    }
  }
}

} // namespace mlir::ds::codegen
