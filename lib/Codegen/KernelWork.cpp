//===- KernelWork.cpp - The arithmetic of a fused body ------------------------------===//
//
// An op's scalar body is built, counted and dropped. What one operation of arith or math takes was measured
// on generated kernels (AVX-512, elements in the first cache) against an addition: functions become
// polynomials, which are additions to any processor, while divisions and roots, counted apart, hold a unit
// whose speed differs between processors; a power is a call of libm for each element.
//
//===---------------------------------------------------------------------------===//
#include "ds/Codegen/KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ds;

KernelWork &KernelWork::operator+=(const KernelWork &other) {
  additions += other.additions;
  divisions += other.divisions;
  roots += other.roots;
  rows += other.rows;
  return *this;
}

KernelWork mlir::ds::operator*(KernelWork work, double times) {
  return {work.additions * times, work.divisions * times, work.roots * times, work.rows * times};
}

/// One operation of a scalar body.
static KernelWork workOfOperation(Operation *op) {
  return llvm::TypeSwitch<Operation *, KernelWork>(op)
      .Case<arith::ConstantOp>([](auto) { return KernelWork(); })
      .Case<arith::DivFOp>([](auto) {
        return KernelWork{0, 1};
      })
      .Case<math::SqrtOp>([](auto) {
        return KernelWork{0, 0, 1};
      })
      .Case<math::ExpOp>([](auto) { return KernelWork{40}; })
      .Case<math::TanhOp>([](auto) {
        return KernelWork{36, 1};
      })
      .Case<math::SinOp, math::CosOp>([](auto) { return KernelWork{47}; })
      .Case<math::LogOp>([](auto) { return KernelWork{68}; })
      .Case<math::ErfOp>([](auto) { return KernelWork{120}; })
      .Case<math::PowFOp>([](auto) { return KernelWork{490}; })
      .Default([](auto) { return KernelWork{1}; });
}

/// One element of an elementwise op.
static KernelWork workOfElement(ScalarBodyOpInterface op) {
  Block block;
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> operands;
  for (Type type : op->getOperandTypes()) {
    Type element = getElementTypeOrSelf(type);
    if (element.isUnsignedInteger()) // scalar bodies see bits
      element = builder.getIntegerType(element.getIntOrFloatBitWidth());
    operands.push_back(block.addArgument(element, op.getLoc()));
  }
  op.buildScalar(builder, op.getLoc(), operands);
  KernelWork work;
  for (Operation &built : block)
    work += workOfOperation(&built);
  return work;
}

/// Elements of the largest tensor that `op` reads or writes.
static double largestTensor(Operation *op, int64_t extent) {
  double most = 0;
  auto look = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      most = std::max(most, tensor.hasStaticShape() ? double(tensor.getNumElements()) : double(extent));
  };
  llvm::for_each(op->getOperandTypes(), look);
  llvm::for_each(op->getResultTypes(), look);
  return most;
}

/// Whether `op` combines elements of a row, so that what needs its result needs a further pass over the row.
static bool isReduction(Operation *op) {
  auto fusable = dyn_cast<FusableOpInterface>(op);
  return fusable && fusable.getFusionKind() == FusionKind::Reduction;
}

/// Whether the reduction goes along the innermost dimension, so that the lanes of its sums are added up.
static bool reducesRows(Operation *op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce)
    return false;
  auto type = cast<RankedTensorType>(reduce.getInput().getType());
  return type.hasStaticShape() && llvm::is_contained(reduce.getDims(), type.getRank() - 1);
}

namespace {
/// The passes of a kernel over its elements: reductions that need no other, those that need them, and so on,
/// then the outputs. No pass leaves more than its sums, so each computes again what it needs.
class Passes {
public:
  Passes(Block &body, int64_t extent) : extent(extent) {
    unsigned last = 0;
    for (Operation &op : body.without_terminator()) {
      unsigned level = 0;
      for (Value operand : op.getOperands())
        if (Operation *source = operand.getDefiningOp())
          level = std::max(level, levels.lookup(source) + isReduction(source));
      levels[&op] = level;
      last = std::max(last, level + isReduction(&op));
    }
    for (Operation &op : body.without_terminator())
      if (isReduction(&op)) {
        visit(&op, levels[&op]);
        addRows(&op);
      }
    for (Value output : body.getTerminator()->getOperands())
      if (Operation *source = output.getDefiningOp(); source && !isReduction(source))
        visit(source, last);
  }

  KernelWork work;

private:
  /// Reductions of one level are added up side by side.
  void addRows(Operation *op) {
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    if (reducesRows(op) && waited.insert(levels[op]).second)
      work.rows += double(result.getNumElements());
  }

  /// Adds what pass `pass` computes for `op`, once.
  void visit(Operation *op, unsigned pass) {
    if (!seen.insert({op, pass}).second)
      return;
    work += workOf(op);
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && !isReduction(source))
        visit(source, pass);
  }

  KernelWork workOf(Operation *op) const {
    if (auto scalar = dyn_cast<ScalarBodyOpInterface>(op))
      return workOfElement(scalar) * largestTensor(op, extent);
    if (isReduction(op))
      return {largestTensor(op, extent)};
    auto cost = dyn_cast<CostOpInterface>(op);
    return {cost ? double(cost.getFlops()) : 0.0};
  }

  int64_t extent;
  llvm::DenseMap<Operation *, unsigned> levels;
  llvm::DenseSet<std::pair<Operation *, unsigned>> seen;
  llvm::DenseSet<unsigned> waited;
};
} // namespace

KernelWork mlir::ds::kernelWork(KernelOp kernel, int64_t extent) {
  return Passes(kernel.getBody().front(), extent).work;
}
