//===- OfferLoss.cpp - In what pieces a loss could be made -----------------------===//
//
// Logits have a row for each token and a column for each word of the vocabulary, and backward overwrites them
// with their gradient: they are often the largest value of a step, needed for a moment only. A loss is a sum
// over rows, so the rows can be taken in chunks (SplitLoss.cpp). Whether memory asks for that, and for how
// many, is part of what is chosen with all else that takes the step's memory: so a loss says here what it
// offers, while it is easily seen what the logits are.
//
//===---------------------------------------------------------------------------===//
#include "LinearLoss.h"
#include "MarkTargets.h"
#include "NormalizeLoss.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::ds {
#define GEN_PASS_DEF_OFFERLOSS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Rows of the chunks that logits of `shape` may be made in, where `chunks` are asked for; 0: by memory.
static SmallVector<int64_t> findOffers(const LogitsShape &shape, int64_t chunks) {
  SmallVector<int64_t> rows =
      chunks > 0 ? SmallVector<int64_t>{int64_t(llvm::divideCeil(shape.rows, chunks))} : offerLossRows(shape);
  llvm::erase_if(rows, [&](int64_t of) { return of >= shape.rows; });
  return rows;
}

namespace {
struct OfferLoss : mlir::ds::impl::OfferLossBase<OfferLoss> {
  using OfferLossBase::OfferLossBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)))
      return signalPassFailure();
    const TrainingOptions training = getTraining(getOperation());
    markTargets(getOperation());
    // First: chunks take over what the whole loss is divided by.
    if (training.lossMean == LossMean::Tokens && failed(normalizeLoss(getOperation())))
      return signalPassFailure();
    if (training.lossChunks != 1)
      getOperation().walk([&](CrossEntropyOp loss) { offer(loss, training.lossChunks); });
  }

  void offer(CrossEntropyOp loss, int64_t chunks) {
    std::optional<LinearLoss> match = matchLinearLoss(loss);
    if (!match) {
      if (remarks)
        loss.emitRemark("stays whole: its logits are no product that nothing else reads");
      return;
    }
    const LogitsShape shape = shapeOf(*match);
    SmallVector<int64_t> rows = findOffers(shape, chunks);
    if (!rows.empty())
      loss.setPieceRows(rows);
    else if (remarks)
      loss.emitRemark("stays whole: chunks of its ") << shape.rows << " rows would save too little";
  }
};
} // namespace
