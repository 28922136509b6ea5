//===- ResidencyWorkspaces.cpp - Scratch memory of libraries, in a step's problem ---===//
//
// On a GPU budgets of libraries are known without asking them (Workspaces.h). Those of products are live
// bytes; those of attention's gradient are a choice, from pieces of the usual size down to none.
//
//===---------------------------------------------------------------------------------===//
#include "StepProblem.h"

#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/Workspaces.h"
#include "ds/Runtime/Program/AttentionPieces.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// What the workspace of an attention or its gradient depends on besides sizes.
template <typename AttentionOpT>
static ::ds::rt::AttentionForm attentionForm(AttentionOpT op, bool isGradient) {
  const bool isFast = getMachine(op->template getParentOfType<ModuleOp>()).hasFastAttention;
  return {isGradient,
          op.getCausal(),
          isFast,
          op.getWindow(),
          op.getDropout().has_value(),
          op.getSlopes() != nullptr};
}

/// What cuDNN will be given for an attention of 16 bits: what dropout leaves of a piece, and little else.
static int64_t forwardBytes(AttentionOp op, uint64_t usual) {
  if (tensorType(op.getQuery()).getElementTypeBitWidth() != 16 || !op.getDropout() || hasScoreForm(op))
    return 0;
  const auto pieces = ::ds::rt::attentionPieces(sizesOf(op), attentionForm(op, /*isGradient=*/false),
                                                std::max<uint64_t>(1, usual));
  return pieces ? static_cast<int64_t>(pieces->workspaceBytes) : 0;
}

/// Attention's gradient is computed in pieces of the usual size or smaller ones, which ds-assign-workspaces
/// takes where there is no room for larger ones; where there is none for the smallest, by other kernels.
static void addPieces(StepProblem &step, AttentionGradOp gradient, uint32_t index, uint32_t moment) {
  const StepSegment &segment = step.segments[index];
  if (tensorType(gradient.getQuery()).getElementTypeBitWidth() != 16 || hasScoreForm(gradient) ||
      lacksGradientEngine(gradient))
    return; // cuDNN is not asked for it
  const ::ds::rt::AttentionSizes sizes = sizesOf(gradient);
  const ::ds::rt::AttentionForm form = attentionForm(gradient, /*isGradient=*/true);
  analysis::ResidencyValue value;
  value.isRead = true;
  int64_t last = StepProblem::kNoLimit;
  for (uint64_t piece = std::max<uint64_t>(1, step.limits.attentionBytes); piece > 0;
       piece = llvm::bit_floor(piece) / 2) {
    auto pieces = ::ds::rt::attentionPieces(sizes, form, piece);
    if (!pieces)
      return;
    const auto bytes = int64_t(pieces->workspaceBytes);
    if (bytes >= last)
      continue;
    last = bytes;
    double count = double(sizes.batch / pieces->batch) * double(sizes.groups / pieces->groups);
    const uint32_t at = segment.at(moment);
    value.homes.push_back({{{StepProblem::kDevice, bytes, at, at + 1}},
                           step.chargesOf(segment, 0, count * step.costs.launchSeconds())});
  }
  value.homes.push_back({{}, step.chargesOf(segment, 0, step.costs.slowAttentionSeconds(gradient))});
  step.add(std::move(value), {index, {}, {}, gradient});
}

void mlir::ds::addWorkspaces(StepProblem &step, uint32_t index) {
  const StepSegment &segment = step.segments[index];
  const StringRef target = getTarget(segment.func->getParentOfType<ModuleOp>());
  for (uint32_t moment = 0; moment < segment.memory.commands().size(); ++moment) {
    Operation *op = segment.memory.commands()[moment].front();
    auto hold = [&](int64_t bytes) {
      step.live.hold({StepProblem::kDevice, bytes, segment.at(moment), segment.at(moment) + 1});
    };
    if (auto product = dyn_cast<MatmulOp>(op))
      hold(int64_t(blasBytes(tensorType(product.getResult()).getNumElements(), target)));
    if (auto gradient = dyn_cast<AttentionGradOp>(op))
      addPieces(step, gradient, index, moment);
    if (auto forward = dyn_cast<AttentionOp>(op))
      hold(forwardBytes(forward, step.limits.attentionBytes));
  }
}
