//===- Precision.cpp - Which float type each op is computed in -------------------===//
//
// The one table of mixed precision. It follows the lists of PyTorch's autocast: products have fast 16-bit
// units that sum in f32; exponentials, powers, sums and norms lose too much range or accuracy; everything
// else takes the types that it is given. Two entries differ in form, not in numbers: a cross-entropy reads
// its logits in whatever type they have, for it computes in f32 inside, and a table lookup passes on its
// table's type.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/DsTraining.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ds;

/// What is said of an op as a whole.
static Precision lookupPrecision(Operation *op) {
  return llvm::TypeSwitch<Operation *, Precision>(op)
      .Case<MatmulOp, AttentionOp, ConvOp, ConvGradInputOp>([](auto) { return Precision::Low; })
      .Case<ExpOp, LogOp, PowOp, RsqrtOp, SoftmaxOp, LayerNormOp, RmsNormOp>(
          [](auto) { return Precision::Single; })
      .Case<ReduceOp>([](ReduceOp reduce) {
        return reduce.getKind() == ReduceKind::Sum ? Precision::Single : Precision::Widest;
      })
      .Case<ConstantOp, IotaOp, RandomUniformOp, ConvertOp>([](auto) { return Precision::AsIs; })
      .Default(Precision::Widest);
}

Precision mlir::ds::lookupOperandPrecision(Operation *op, unsigned index) {
  constexpr unsigned kFirstAddend = 3; // the mask, then the slopes
  if (isa<CrossEntropyOp>(op) && index > 0)
    return Precision::AsIs; // the denominator is f32 by definition
  if (isa<BatchNormOp>(op) && index > 0)
    return Precision::AsIs; // weight, bias and statistics are widened inside
  if (isa<AttentionOp>(op) && index >= kFirstAddend)
    return Precision::Single; // they are added to the scores, which are f32
  return lookupPrecision(op);
}

Precision mlir::ds::lookupResultPrecision(Operation *op, unsigned index) {
  if (isa<CrossEntropyOp>(op) || (isa<AttentionOp, BatchNormOp>(op) && index > 0))
    return Precision::AsIs; // row statistics and losses are f32 by definition
  return lookupPrecision(op);
}
