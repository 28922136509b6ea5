//===- NormalizeLoss.cpp - What the mean of a loss is over --------------------------===//
//
// A micro-batch's cross-entropy is the sum of its rows' losses over the number of its targets, and a step's
// loss the mean of such means: where masks leave 5 targets in one micro-batch and 3 in the other, those 3
// weigh more. A mean over all 8 needs their number before the first backward, which would otherwise have to
// scale gradients a second time. It follows from the inputs alone, so the host, which reads all micro-batches
// of a step, counts them and writes their mean, 4, to a scalar state; the program divides by that, and the
// mean over micro-batches and ranks, which all else of a loss keeps, makes it the mean over 8:
// (s1 / 4 + s2 / 4) / 2. The step stays one sequence of commands without another collective, and a rank
// without a target adds 0.
//
// The alternative, a segment that counts all micro-batches before the first forward, would have them copied
// to the device twice, or kept there.
//
// Which elements of the inputs those are MarkTargets.h finds; where it does not, it is refused here.
//
//===---------------------------------------------------------------------------===//
#include "NormalizeLoss.h"

#include "ds/Dialect/Emitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace mlir::ds;

/// The state by which losses are divided: how many targets a micro-batch of a rank has on average.
static constexpr StringLiteral kMeanTargetsState = "mean_targets";
/// The key of ds.training that asks for it.
static constexpr StringLiteral kKey = "loss_normalization";

/// Declares @mean_targets, which starts as `targets`, and makes it an argument of `forward`; null, with a
/// diagnostic, where the model has a symbol of that name.
static Value addMeanTargets(func::FuncOp forward, int64_t targets) {
  auto module = forward->getParentOfType<ModuleOp>();
  if (Operation *other = SymbolTable::lookupSymbolIn(module, kMeanTargetsState)) {
    other->emitOpError("expects a name that the step does not use itself, but got \"")
        << kMeanTargetsState << '"';
    return {};
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (StateOp state : module.getOps<StateOp>())
    builder.setInsertionPointAfter(state);
  auto init = InitAttr::get(module.getContext(), InitKind::Constant, static_cast<double>(targets), 0.0);
  auto state = builder.create<StateOp>(module.getLoc(), kMeanTargetsState, Role::Scalar, /*trainable=*/false,
                                       /*aliases=*/ArrayAttr(), /*owner=*/FlatSymbolRefAttr(), init,
                                       Space::Device, RankedTensorType::get({}, builder.getF32Type()));
  unsigned index = forward.getNumArguments();
  auto attr = builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state));
  forward.insertArgument(index, state.getTensorType(), builder.getDictionaryAttr(attr), state.getLoc());
  return forward.getArgument(index);
}

/// Whether it is known which elements of an input are targets.
static bool hasTargets(ModuleOp module) {
  auto indices = module->getAttrOfType<ArrayAttr>(DsDialect::kIndicesAttr);
  return indices && llvm::any_of(indices.getAsRange<IndicesAttr>(),
                                 [](IndicesAttr known) { return !known.getTargets().empty(); });
}

/// Fails where the mean over the targets of `losses` cannot be told from the inputs.
static LogicalResult checkLosses(ModuleOp module, ArrayRef<CrossEntropyOp> losses) {
  auto fail = [](Operation *op, StringRef expected) -> LogicalResult {
    InFlightDiagnostic error = op->emitError() << '"' << kKey << "\": \"tokens\" expects " << expected;
    error.attachNote() << "\"micro_batches\" takes the mean of the micro-batches' losses, whatever they are";
    return error;
  };
  if (losses.empty())
    return fail(module, "a cross_entropy as loss, but the model has none");
  CrossEntropyOp first = losses.front();
  for (CrossEntropyOp loss : losses) {
    if (loss.getDenominator())
      return fail(loss, "a mean over the loss's own targets, but it is divided by another number");
    if (!hasTargets(module) || loss.getTargets().getType() != first.getTargets().getType())
      return fail(loss,
                  "targets that are the same elements of each sample of one input, but forward computes "
                  "them, or other losses have others");
  }
  return success();
}

LogicalResult mlir::ds::normalizeLoss(ModuleOp module) {
  SmallVector<CrossEntropyOp> losses;
  module.walk([&](CrossEntropyOp loss) { losses.push_back(loss); });
  if (failed(checkLosses(module, losses)))
    return failure();
  auto forward = losses.front()->getParentOfType<func::FuncOp>();
  Value mean = addMeanTargets(forward, tensorType(losses.front().getTargets()).getNumElements());
  if (!mean)
    return failure();
  for (CrossEntropyOp loss : losses)
    loss.getDenominatorMutable().assign(mean);
  return success();
}
