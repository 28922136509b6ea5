//===- ReductionMath.h - How elements are combined -----------------------------===//
#ifndef DS_LIB_CODEGEN_REDUCTIONMATH_H
#define DS_LIB_CODEGEN_REDUCTIONMATH_H

#include "BodyGraph.h"

namespace mlir::ds::codegen {

/// Combines scalars or vectors as `reduction` says.
Value combine(OpBuilder &b, Location loc, const Node *reduction, Value x, Value y);

/// What combines with x to x, in the type that is computed in.
TypedAttr neutralElement(OpBuilder &b, const Node *reduction);

/// Combines the lanes of `total`: halves on halves, so the order is a tree.
Value acrossLanes(OpBuilder &b, Location loc, const Node *reduction, Value total);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_REDUCTIONMATH_H
