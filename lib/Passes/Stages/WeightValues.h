//===- WeightValues.h - What is made of parameters alone, in both halves ------------===//
#ifndef DS_LIB_PASSES_STAGES_WEIGHTVALUES_H
#define DS_LIB_PASSES_STAGES_WEIGHTVALUES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// What forward makes of parameters alone (gathers them, converts them) and backward reads as well is the
/// same for all micro-batches: to keep it of each would take the memory of as many copies of the parameters.
/// So in `func`, a segment on buffers, it is made once more for what stands behind forward.
void remakeWeightValues(func::FuncOp func);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STAGES_WEIGHTVALUES_H
