//===- RecomputeOps.cpp - What backward recomputes ---------------------------------===//
#include "ds/Dialect/Collectives.h"

using namespace mlir;
using namespace mlir::ds;

LogicalResult RecomputeOp::verify() {
  if (!llvm::equal(getBody().front().getArgumentTypes(), getKept().getTypes())) // C1.
    return emitOpError("expects ") << getKept().size() << " block arguments of the kept values' types";
  return success();
}

LogicalResult RecomputeOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getOutputs().getTypes())) // C1.
    return emitOpError("expects to yield ") << getOutputs().size() << " values of the results' types";
  for (Operation &op : getBody().front().without_terminator())
    if (!isPure(&op) && !isExchange(&op)) { // C2.
      InFlightDiagnostic error = emitOpError("expects ops that may run twice in its body, but got ")
                                 << op.getName();
      error.attachNote(op.getLoc()) << "this op";
      return error;
    }
  return success();
}
