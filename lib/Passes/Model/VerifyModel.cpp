//===- VerifyModel.cpp - The border before differentiation ----------------------===//
#include "FindTrained.h"
#include "Support/VerifyPhases.h"
#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/DsTraining.h"
#include "ds/Dialect/Stages.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYMODEL
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// The loss is the first result, a rank-0 float; of a stage that is not the last there is none.
static LogicalResult verifyLoss(func::FuncOp forward) {
  if (!givesLoss(forward))
    return success();
  if (!forward.getNumResults())
    return forward.emitOpError("expects a rank-0 float loss as first result, but got no result");
  auto type = dyn_cast<RankedTensorType>(forward.getResultTypes().front());
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return forward.emitOpError("expects a rank-0 float loss as first result, but got ")
           << forward.getResultTypes().front();
  return success();
}

/// What `attention` adds to its scores depends on no parameter: it gets no gradient.
static LogicalResult verifyAddends(AttentionOp attention, func::FuncOp func, const SymbolTable &symbols) {
  for (auto [name, value] :
       {std::pair("a mask that is not trained, but got one that depends", attention.getMask()),
        std::pair("slopes that are not trained, but got some that depend", attention.getSlopes())}) {
    StateOp trained = value ? findTrained(func, symbols, value) : StateOp();
    if (!trained)
      continue;
    InFlightDiagnostic error = attention.emitOpError("expects ") << name << " on @" << trained.getSymName();
    error.attachNote(trained.getLoc()) << "the parameter is declared trainable here";
    return error;
  }
  return success();
}

/// What a batch norm makes of a micro-batch beside its result is for its gradient, for the next micro-batch
/// and for a later norm with the same statistics: no gradient passes through it.
static LogicalResult verifyStatistics(BatchNormOp norm) {
  for (OpResult statistic : norm->getResults().drop_front())
    for (OpOperand &use : statistic.getUses()) {
      auto later = dyn_cast<BatchNormOp>(use.getOwner());
      const bool isKept = later && llvm::is_contained(later.getRunning(), use.get());
      if (statistic.getResultNumber() > 2 && (isKept || use.getOwner()->hasTrait<OpTrait::IsTerminator>()))
        continue;
      return norm.emitOpError(
                 "expects statistics that only its gradient and the next micro-batch read, but result ")
             << statistic.getResultNumber() << " is used";
    }
  return success();
}

/// No gradient can pass where an op of the model has none: row statistics, masks and slopes.
static LogicalResult verifyGradientsPass(func::FuncOp func, const SymbolTable &symbols) {
  for (Operation &op : func.getBody().front()) {
    if (isa<AttentionGradOp, BatchNormGradOp, ConvGradWeightOp, EmbeddingGradOp, CrossEntropyGradOp>(op))
      return op.emitOpError("belongs to phase step, but stands in a model");
    if (auto product = dyn_cast<ProductOpInterface>(op); product && takesGradient(product.getEpilogue()))
      return op.emitOpError("with epilogue(")
             << stringifyEpilogue(product.getEpilogue()) << ") belongs to phase step, but stands in a model";
    // The count of targets that are not ignored depends on no parameter: it may be read.
    if (isa<AttentionOp, CrossEntropyOp>(op))
      for (Value statistic : op.getResults().slice(1, 1))
        if (!statistic.use_empty())
          return op.emitOpError("expects row statistics that only its gradient reads, but result ")
                 << cast<OpResult>(statistic).getResultNumber() << " is used";
    if (auto norm = dyn_cast<BatchNormOp>(op); norm && failed(verifyStatistics(norm)))
      return failure();
    if (auto attention = dyn_cast<AttentionOp>(op);
        attention && failed(verifyAddends(attention, func, symbols)))
      return failure();
  }
  return success();
}

namespace {
struct VerifyModel : mlir::ds::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    auto forward = symbols.lookup<func::FuncOp>("forward");
    if (!forward) {
      emitError(getOperation().getLoc(),
                "expects a function @forward in phase model, but the module has none");
      return signalPassFailure();
    }
    if (failed(verifyLoss(forward)) || failed(verifyArguments(forward, symbols)) ||
        failed(verifyTensorPhase(forward)) || failed(verifyGradientsPass(forward, symbols)))
      signalPassFailure();
  }
};
} // namespace
