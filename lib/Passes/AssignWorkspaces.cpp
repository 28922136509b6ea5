//===- AssignWorkspaces.cpp - Plans the scratch memory of library calls ----------===//
//
// A library that allocates behind the planner's back would make the plan a lie, so the scratch memory of
// every matrix product is an allocation like any other. How much the product asks for is the library's own
// answer, on this machine and for the program's number of threads; the runtime holds it to that. The kernels
// that sum 16-bit gradients in f32 name theirs in Library.h.
//
//===---------------------------------------------------------------------------===//
#include "RuntimeBuffer.h"
#include "ds/Passes/Passes.h"
#include "ds/Runtime/Library.h"
#include "ds/Runtime/ProductBlocks.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ASSIGNWORKSPACES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Integer parameters of `call`, as the runtime reads them.
static SmallVector<int64_t> integerParams(CallOp call) {
  SmallVector<int64_t> params;
  for (Attribute param : call.getParams())
    params.push_back(isa<IntegerAttr>(param) ? cast<IntegerAttr>(param).getInt() : 0);
  return params;
}

/// Bytes of scratch memory that `call` asks for, or why that is unknown.
static ::ds::Result<uint64_t> scratchBytes(CallOp call, uint32_t threads) {
  namespace rt = ::ds::rt;
  SmallVector<rt::Buffer> buffers = llvm::map_to_vector(
      call.getBuffers(), [](Value buffer) { return toRuntimeBuffer(cast<BufferType>(buffer.getType()), 0); });
  SmallVector<const rt::Buffer *> operands =
      llvm::map_to_vector(buffers, [](const rt::Buffer &buffer) { return &buffer; });
  std::span<const rt::Buffer *const> view(operands.data(), operands.size());
  if (call.getCallee() == "attention_backward")
    return rt::libraryWorkspaceBytes(rt::LibraryFn::AttentionBackward, view, threads);
  if (call.getCallee() == "embedding_backward")
    return rt::libraryWorkspaceBytes(rt::LibraryFn::EmbeddingBackward, view, threads);
  if (call.getCallee() != "matmul")
    return uint64_t(0);
  SmallVector<int64_t> params = integerParams(call);
  const rt::Buffer *bias = buffers.size() > 3 ? &buffers[3] : nullptr;
  return rt::productWorkspaceBytes(
      rt::describeMatmul(buffers[0], buffers[1], buffers[2], bias, params.data()), threads);
}

/// Bytes of staging memory that the ranks' parts need in `op`.
static uint64_t stagingBytes(CommunicateOp op) {
  MeshOp mesh = MeshOp::lookup(op);
  return ::ds::rt::collectiveStagingBytes(toRuntimeCollective(op, ""), mesh ? mesh.getSize(op.getAxis()) : 1);
}

/// Makes `bytes` of scratch memory an allocation before `op`; none for 0.
static void assign(Operation *op, MutableOperandRange workspace, uint64_t bytes) {
  if (bytes == 0)
    return;
  OpBuilder builder(op);
  auto type = RankedTensorType::get({static_cast<int64_t>(bytes)}, builder.getI8Type());
  auto alloc = builder.create<AllocOp>(op->getLoc(), BufferType::getContiguous(type),
                                       builder.getStringAttr("workspace"), IntegerAttr());
  workspace.assign(alloc.getBuffer());
}

namespace {
struct AssignWorkspaces : mlir::ds::impl::AssignWorkspacesBase<AssignWorkspaces> {
  using AssignWorkspacesBase::AssignWorkspacesBase;

  void runOnOperation() override {
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
