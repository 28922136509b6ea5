//===- VerifyWork.cpp - Ops say whose work they are, and values follow it ---------===//
#include "VerifyPhases.h"

#include "ds/Dialect/Work.h"

using namespace mlir;
using namespace mlir::ds;

/// Whether `segment` does the work that an op of it says.
static bool fits(SegmentAttr segment, Work work) {
  if (segment.does(Work::Evaluation))
    return work == Work::Forward;
  if (work == Work::Recompute || work == Work::Backward)
    return segment.does(Work::Backward) || segment.does(Work::InputGradient) ||
           segment.does(Work::WeightGradient);
  return segment.does(work);
}

LogicalResult mlir::ds::verifyWork(func::FuncOp func) {
  SegmentAttr segment = SegmentAttr::of(func);
  for (Operation &op : func.getBody().front()) {
    if (!needsWork(&op))
      continue;
    std::optional<Work> work = getWork(&op);
    if (!work || !fits(segment, *work)) {
      InFlightDiagnostic error = op.emitOpError("expects ")
                                 << DsDialect::kWorkAttr << " of " << segment << ", but got "
                                 << (work ? stringifyWork(*work) : "none");
      if (!work)
        error.attachNote()
            << "--ds-differentiate says it first; --ds-simplify keeps it, --canonicalize does not";
      return error;
    }
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      std::optional<Work> made = maker ? getWork(maker) : std::nullopt;
      // What is recomputed reads what was gathered for backward, and the gradient that releases it.
      bool isBeside = work == Work::Recompute && made == Work::Backward &&
                      (isa<RecomputeOp>(op) || isa<CollectiveOpInterface>(maker));
      // A region says one work for all of its ops, be some of another.
      bool isOfRegion = isa<FusedOp>(op) || isa_and_present<FusedOp>(maker);
      if (!made || isBeside || isOfRegion || !isBefore(*work, *made))
        continue;
      InFlightDiagnostic error = op.emitOpError("is ")
                                 << stringifyWork(*work) << ", but reads what is " << stringifyWork(*made);
      error.attachNote(maker->getLoc()) << "made here";
      return error;
    }
  }
  return success();
}
