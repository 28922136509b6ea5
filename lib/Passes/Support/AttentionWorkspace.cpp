//===- AttentionWorkspace.cpp - What attention's gradient takes of the plan -------===//
#include "ds/Passes/AttentionWorkspace.h"

#include "RuntimeCall.h"
#include "ds/Passes/Pipeline.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
namespace rt = ::ds::rt;

static bool isGradient(CallOp call) { return call.getCallee() == "attention_backward"; }
static bool isAttention(CallOp call) { return isGradient(call) || call.getCallee() == "attention_forward"; }

std::optional<rt::AttentionPieces> mlir::ds::cudnnPieces(CallOp op, uint64_t usual) {
  if (!isAttention(op))
    return std::nullopt;
  const RuntimeCall call(op);
  bool causal = call.params[0] != 0;
  return rt::attentionPieces(call.function, call.operands(), causal, usual);
}

/// Those gradients of attention in `module` that cuDNN is asked for.
static SmallVector<CallOp> findGradients(ModuleOp module) {
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
  for (CallOp call : findGradients(module))
    most = std::max(most, cudnnPieces(call, usual)->workspaceBytes);
  return most;
}

bool mlir::ds::lacksWorkspace(Operation *command) {
  auto call = dyn_cast<CallOp>(command);
  if (!call || !isAttention(call) || call.getWorkspace())
    return false;
  auto module = call->getParentOfType<ModuleOp>();
  return module->hasAttr(kPlanAttr) && isForCuda(module);
}

/// Bytes of the workspace that is planned for `call`.
static uint64_t plannedBytes(CallOp call) {
  Value workspace = call.getWorkspace();
  return workspace ? static_cast<uint64_t>(cast<BufferType>(workspace.getType()).getSizeInBytes()) : 0;
}

/// Why a plan has `attention`, which is less than usual.
static std::string describe(const analysis::AttentionWorkspace &attention) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (attention.bytes == 0)
    out << "gradients of attention are computed in f32 by the runtime's own kernels: cuDNN's workspace of "
        << analysis::formatBytes(attention.leastBytes) << " at least does not fit";
  else
    out << "gradients of attention are computed by cuDNN in pieces with a workspace of "
        << analysis::formatBytes(attention.bytes) << ": the usual "
        << analysis::formatBytes(attention.usualBytes) << " do not fit";
  return text;
}

void mlir::ds::describeAttention(ModuleOp module, analysis::PlanReport &report) {
  SmallVector<CallOp> calls = findGradients(module);
  if (calls.empty())
    return;
  uint64_t planned = 0;
  for (CallOp call : calls)
    planned = std::max(planned, plannedBytes(call));
  analysis::AttentionWorkspace attention;
  attention.bytes = static_cast<int64_t>(planned);
  attention.usualBytes = static_cast<int64_t>(gradientWorkspaceBytes(module, rt::kUsualPieceBytes));
  attention.leastBytes = static_cast<int64_t>(gradientWorkspaceBytes(module, 1));
  report.attention = attention;
  if (attention.bytes < attention.usualBytes)
    report.notes.push_back(describe(attention));
}
