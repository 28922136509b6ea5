//===- AssignWorkspaces.cpp - Plans the scratch memory of library calls ----------===//
//
// A library that allocates behind the planner's back would make the plan a lie, so the scratch memory of
// every matrix product and convolution is an allocation like any other; how large is in Support/Workspaces.h.
//
//===---------------------------------------------------------------------------===//
#include "Support/RuntimeBuffer.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/ComputeMemory.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ASSIGNWORKSPACES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Bytes of staging memory that the ranks' parts need in `op`.
static uint64_t stagingBytes(CommunicateOp op) {
  MeshOp mesh = MeshOp::lookup(op);
  return ::ds::rt::collectiveStagingBytes(toRuntimeCollective(op, ""), mesh ? mesh.getSize(op.getAxes()) : 1);
}

/// Makes `bytes` of scratch memory an allocation before `op`; none for 0.
static void assign(Operation *op, MutableOperandRange workspace, uint64_t bytes, int64_t alignment = 0,
                   Space space = Space::Device) {
  if (bytes == 0)
    return;
  OpBuilder builder(op);
  auto type = RankedTensorType::get({static_cast<int64_t>(bytes)}, builder.getI8Type());
  auto alloc =
      builder.create<AllocOp>(op->getLoc(), BufferType::getContiguous(type, space), AllocCategory::Workspace);
  if (alignment > 0)
    alloc.setAlignment(alignment);
  workspace.assign(alloc.getBuffer());
}

/// The workspace of a call on the host's cores, in its memory.
static LogicalResult assignOnHost(CallOp call) {
  ::ds::Result<uint64_t> bytes = hostWorkspaceBytes(call);
  if (!bytes)
    return call.emitOpError("has an unknown workspace: ") << bytes.error().message;
  assign(call, call.getWorkspaceMutable(), *bytes, 0, Space::Host);
  return success();
}

namespace {
struct AssignWorkspaces : mlir::ds::impl::AssignWorkspacesBase<AssignWorkspaces> {
  using AssignWorkspacesBase::AssignWorkspacesBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    auto module = getOperation()->getParentOfType<ModuleOp>();
    const bool isCuda = isForCuda(module);
    if (!isCuda)
      getOperation().walk([](CommunicateOp op) { assign(op, op.getWorkspaceMutable(), stagingBytes(op)); });
    for (CallOp call : getOperation().getOps<CallOp>())
      if (call.getStream() == StreamKind::Host && failed(assignOnHost(call)))
        return signalPassFailure();
    // What gathers and reductions hold by now is live as well: pieces get what is left.
    const WorkspaceLimits limits = limitsOf(module);
    std::optional<ComputeMemory> held;
    if (const std::optional<int64_t> available = bytesWithin(memory, module))
      held.emplace(getOperation(), available);
    for (auto [index, command] : llvm::enumerate(getComputeCommands(getOperation()))) {
      auto call = dyn_cast<CallOp>(command);
      if (!call)
        continue;
      ::ds::Result<uint64_t> bytes = held ? held->workspaceAt(index, limits) : workspaceBytes(call, limits);
      if (!bytes) {
        call.emitOpError("has an unknown workspace: ") << bytes.error().message;
        return signalPassFailure();
      }
      assign(call, call.getWorkspaceMutable(), *bytes, isCuda ? kCudaAlignment : 0);
    }
  }
};
} // namespace
