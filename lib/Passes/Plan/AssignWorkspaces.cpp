//===- AssignWorkspaces.cpp - Plans the scratch memory of library calls ----------===//
//
// A library that allocates behind the planner's back would make the plan a lie, so the scratch memory of
// every matrix product and convolution is an allocation like any other. How much it asks for is the library's
// own answer, on this machine and for the program's number of threads; the runtime holds it to that. The
// kernels that sum 16-bit gradients in f32 or many tensors at once name theirs in Library.h.
//
// Programs for CUDA are compiled where cuBLASLt cannot be asked, for it answers only beside a GPU. There the
// plan sets a budget and the runtime chooses among the algorithms within it. So it does for attention and
// convolutions, which cuDNN computes where it is (AttentionPieces.h, ConvForm.h). Sums of squares need what
// they need on the CPU, the other kernels nothing, and NCCL's buffers are NCCL's own.
//
//===---------------------------------------------------------------------------===//
#include "Support/RuntimeCall.h"
#include "ds/Dialect/Target.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Library.h"
#include "ds/Runtime/OnednnConv.h"
#include "ds/Runtime/ProductBlocks.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ASSIGNWORKSPACES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Bytes of scratch memory that `op` asks for, or why that is unknown.
static ::ds::Result<uint64_t> scratchBytes(CallOp op, uint32_t threads) {
  namespace rt = ::ds::rt;
  if (!findLibraryFunction(op.getCallee()))
    return uint64_t(0);
  const RuntimeCall call(op);
  if (rt::isConvolution(call.function)) {
    auto layout = rt::layoutConvWorkspace(call.convolution(), call.operand(0).dtype, threads);
    return layout ? ::ds::Result<uint64_t>(layout->bytes) : layout.error();
  }
  if (call.function != rt::LibraryFn::Matmul)
    return rt::libraryWorkspaceBytes(call.function, call.operands(), threads);
  const rt::Buffer *bias = rt::matmulExtras(call.operands()).bias;
  return rt::productWorkspaceBytes(
      rt::describeMatmul(call.operand(0), call.operand(1), call.operand(2), bias, call.params.data()),
      threads);
}

/// Of which the workspaces of cuBLASLt and cuDNN are to be multiples.
static constexpr int64_t kCudaAlignment = 256;
static_assert(kCudaAlignment % ::ds::rt::kAttentionAlignment == 0);

/// Bytes that cuBLASLt may use for `call`: sixteen partial results in f32 of products whose sum is split, and
/// no more than NVIDIA recommends for the architecture.
static uint64_t blasBudget(CallOp call, StringRef target) {
  auto result = cast<BufferType>(call.getBuffers()[2].getType()).getTensor();
  uint64_t partials = 16 * sizeof(float) * static_cast<uint64_t>(result.getNumElements());
  uint64_t most = uint64_t(target == "cuda:sm_90" ? 32 : 4) << 20;
  return std::min(most, llvm::alignTo(partials, kCudaAlignment));
}

/// Bytes that NVIDIA's libraries may use for `call`: of a gradient of attention in pieces of `attentionBytes`
/// where they need not be larger, or nothing for 0.
static uint64_t cudaBudget(CallOp call, StringRef target, uint64_t attentionBytes) {
  using ::ds::rt::LibraryFn;
  if (isCallOf(call, LibraryFn::Matmul))
    return blasBudget(call, target);
  const LibraryEntry *function = findLibraryFunction(call.getCallee());
  if (function && ::ds::rt::isConvolution(function->fn)) {
    const RuntimeCall convolution(call);
    return ::ds::rt::cudnnConvBytes(convolution.convolution(), convolution.operand(0).dtype);
  }
  if (isCallOf(call, LibraryFn::SumOfSquares))
    return ::ds::rt::libraryWorkspaceBytes(function->fn, RuntimeCall(call).operands(), 1);
  if (isCallOf(call, LibraryFn::AttentionBackward) && attentionBytes == 0)
    return 0;
  auto pieces = cudnnPieces(call, attentionBytes);
  return pieces ? pieces->workspaceBytes : 0;
}

/// Bytes of staging memory that the ranks' parts need in `op`.
static uint64_t stagingBytes(CommunicateOp op) {
  MeshOp mesh = MeshOp::lookup(op);
  return ::ds::rt::collectiveStagingBytes(toRuntimeCollective(op, ""), mesh ? mesh.getSize(op.getAxes()) : 1);
}

/// Makes `bytes` of scratch memory an allocation before `op`; none for 0.
static void assign(Operation *op, MutableOperandRange workspace, uint64_t bytes, int64_t alignment = 0) {
  if (bytes == 0)
    return;
  OpBuilder builder(op);
  auto type = RankedTensorType::get({static_cast<int64_t>(bytes)}, builder.getI8Type());
  auto alloc = builder.create<AllocOp>(op->getLoc(), BufferType::getContiguous(type),
                                       builder.getStringAttr("workspace"), IntegerAttr());
  if (alignment > 0)
    alloc->setAttr(kAlignmentAttr, builder.getI64IntegerAttr(alignment));
  workspace.assign(alloc.getBuffer());
}

namespace {
struct AssignWorkspaces : mlir::ds::impl::AssignWorkspacesBase<AssignWorkspaces> {
  using AssignWorkspacesBase::AssignWorkspacesBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (isForCuda(module)) {
      StringRef target = getTarget(module);
      getOperation().walk([&](CallOp call) {
        assign(call, call.getWorkspaceMutable(), cudaBudget(call, target, attentionBytes), kCudaAlignment);
      });
      return;
    }
    getOperation().walk([](CommunicateOp op) { assign(op, op.getWorkspaceMutable(), stagingBytes(op)); });
    WalkResult result = getOperation().walk([&](CallOp call) {
      ::ds::Result<uint64_t> bytes = scratchBytes(call, threads);
      if (bytes) {
        assign(call, call.getWorkspaceMutable(), *bytes);
        return WalkResult::advance();
      }
      call.emitOpError("has an unknown workspace: ") << bytes.error().message;
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
