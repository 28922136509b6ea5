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

bool mlir::ds::lacksGradientEngine(ModuleOp module, bool hasCap, int64_t headSize) {
  constexpr int64_t kMostHead = 128;
  unsigned version = 0;
  StringRef target = getTarget(module);
  return target.consume_front("cuda:sm_") && !target.consumeInteger(10, version) && version < 90 &&
         (hasCap || headSize > kMostHead);
}

static rt::AttentionParams paramsOf(const RuntimeCall &call) {
  return rt::attentionParams({call.params.data(), call.params.size()});
}

/// Whether the gradient `op` is one that the GPU has no engine for.
static bool lacksEngine(CallOp op, const RuntimeCall &call) {
  return isGradient(op) && lacksGradientEngine(op->getParentOfType<ModuleOp>(),
                                               paramsOf(call).cap.has_value(), call.operand(0).shape[3]);
}

std::optional<rt::AttentionPieces> mlir::ds::cudnnPieces(CallOp op, uint64_t usual) {
  if (!isAttention(op))
    return std::nullopt;
  const RuntimeCall call(op);
  if (lacksEngine(op, call))
    return std::nullopt;
  const rt::AttentionParams params = paramsOf(call);
  return rt::attentionPieces(call.function, call.operands(), params, usual);
}

std::optional<rt::AttentionRefusal> mlir::ds::cudnnRefusal(CallOp op) {
  if (!isAttention(op) || !isForCuda(op->getParentOfType<ModuleOp>()))
    return std::nullopt;
  const RuntimeCall call(op);
  std::optional<rt::AttentionRefusal> refusal =
      rt::attentionRefusal(call.function, call.operands(), paramsOf(call));
  if (!refusal && lacksEngine(op, call))
    refusal = rt::AttentionRefusal::Engine;
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

bool mlir::ds::hasDropout(CallOp op) {
  return isAttention(op) && paramsOf(RuntimeCall(op)).dropout.has_value();
}

bool mlir::ds::isFastGradient(CallOp op) { return paramsOf(RuntimeCall(op)).isFast; }

uint64_t mlir::ds::usualWorkspaceBytes(CallOp op, bool isFast) {
  const RuntimeCall call(op);
  rt::AttentionParams params = paramsOf(call);
  params.isFast = isFast;
  params.block = rt::attentionBlockSize(rt::attentionSizes(call.operands()),
                                        rt::attentionForm(call.function, call.operands(), params));
  const auto pieces = rt::attentionPieces(call.function, call.operands(), params);
  return pieces ? pieces->workspaceBytes : 0;
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
