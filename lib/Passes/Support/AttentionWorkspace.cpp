//===- AttentionWorkspace.cpp - What attention's gradient takes of the plan -------===//
#include "ds/Passes/AttentionWorkspace.h"

#include "RuntimeCall.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

static bool isGradient(CallOp call) { return call.getCallee() == rt::LibraryFn::AttentionBackward; }
static bool isAttention(CallOp call) {
  return isGradient(call) || call.getCallee() == rt::LibraryFn::AttentionForward;
}

std::optional<rt::AttentionPieces> mlir::ds::cudnnPieces(CallOp op, uint64_t usual) {
  if (!isAttention(op))
    return std::nullopt;
  const RuntimeCall call(op);
  const rt::AttentionParams params = rt::attentionParams({call.params.data(), call.params.size()});
  return rt::attentionPieces(call.function, call.operands(), params, usual);
}

std::optional<rt::AttentionRefusal> mlir::ds::cudnnRefusal(CallOp op) {
  if (!isAttention(op) || !isForCuda(op->getParentOfType<ModuleOp>()))
    return std::nullopt;
  const RuntimeCall call(op);
  const rt::AttentionParams params = rt::attentionParams({call.params.data(), call.params.size()});
  const std::optional<rt::AttentionRefusal> refusal =
      rt::attentionRefusal(call.function, call.operands(), params);
  return refusal == rt::AttentionRefusal::SinglePrecision ? std::nullopt : refusal;
}

/// Those gradients of attention in `module` that cuDNN is asked for.
SmallVector<CallOp> mlir::ds::findCudnnGradients(ModuleOp module) {
  SmallVector<CallOp> calls;
  if (isForCuda(module))
    module.walk([&](CallOp call) {
      if (isGradient(call) && cudnnPieces(call, rt::kUsualPieceBytes))
        calls.push_back(call);
    });
  return calls;
}

uint64_t mlir::ds::gradientWorkspaceBytes(ModuleOp module, uint64_t usual) {
  uint64_t most = 0;
  for (CallOp call : findCudnnGradients(module))
    most = std::max(most, cudnnPieces(call, usual)->workspaceBytes);
  return most;
}

bool mlir::ds::isByOwnKernel(CallOp call) {
  return isForCuda(call->getParentOfType<ModuleOp>()) && (lacksWorkspace(call) || !cudnnPieces(call, 1));
}

bool mlir::ds::lacksWorkspace(Operation *command) {
  auto call = dyn_cast<CallOp>(command);
  if (!call || !isAttention(call) || call.getWorkspace())
    return false;
  auto module = call->getParentOfType<ModuleOp>();
  auto phase = module->getAttrOfType<PhaseAttr>(DsDialect::kPhaseAttr);
  return phase && phase.getValue() == Phase::Planned && isForCuda(module);
}
