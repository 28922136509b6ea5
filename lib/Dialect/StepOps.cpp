//===- StepOps.cpp - What a step means, and in which order it runs ---------------===//
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// ScheduleOp
//===----------------------------------------------------------------------===//

/// True for segments that make gradients.
static bool makesGradients(SegmentAttr segment) {
  return segment.does(Work::Backward) || segment.does(Work::WeightGradient);
}

LogicalResult ScheduleOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  bool areSet = false, isUpdated = false;
  for (RunAttr run : getRuns().getAsRange<RunAttr>()) {
    auto func = symbolTable.lookupNearestSymbolFrom<func::FuncOp>(*this, run.getSegment());
    SegmentAttr segment = func ? SegmentAttr::of(func) : SegmentAttr();
    if (!segment || segment.getStage() != static_cast<int64_t>(getStage()) ||
        segment.does(Work::Evaluation)) // C1.
      return emitOpError("expects segments of stage ")
             << getStage() << " that are no evaluation, but got " << run.getSegment();
    if (run.getFirst() < 0 || run.getCount() < 1) // C1.
      return emitOpError("expects at least one micro-batch, from one that is not negative, but got ") << run;
    Gradients expected = !makesGradients(segment) ? Gradients::None
                         : areSet                 ? Gradients::Add
                                                  : Gradients::Set;
    if (run.getGradients() != expected) // C2.
      return emitOpError("expects gradients ") << stringifyGradients(expected) << " of " << run.getSegment()
                                               << ", but got " << stringifyGradients(run.getGradients());
    areSet |= expected == Gradients::Set;
    if (isUpdated || (segment.does(Work::Update) && run.getCount() != 1)) // C3.
      return emitOpError("expects one update, at its end, but got ") << run;
    isUpdated = segment.does(Work::Update);
  }
  if (!isUpdated) // C3.
    return emitOpError("expects an update at its end, but got none");
  return success();
}

//===----------------------------------------------------------------------===//
// AccumulateOp, AdvanceOp, RankMeanOp
//===----------------------------------------------------------------------===//

LogicalResult AccumulateOp::verify() {
  if (getGradient().getType().getShape() != getResult().getType().getShape()) // C1.
    return emitOpError("expects a gradient of the shape of ")
           << getResult().getType() << ", but got " << getGradient().getType();
  if (getKept() && getKept().getType() != getResult().getType()) // C2.
    return emitOpError("expects to add to ") << getResult().getType() << ", but got " << getKept().getType();
  return success();
}

bool AdvanceOp::isNeededWhole() { return true; }

SmallVector<Value> AdvanceOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  Value increment =
      builder.create<IotaOp>(getLoc(), getGenerator().getType(), /*dim=*/0, /*start=*/0, /*step=*/getBy());
  return {emit.add(getGenerator(), increment)};
}

bool RankMeanOp::isNeededWhole() { return true; }

SmallVector<Value> RankMeanOp::decompose(OpBuilder &) { return {getValue()}; }

//===----------------------------------------------------------------------===//
// RecomputeOp
//===----------------------------------------------------------------------===//

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
