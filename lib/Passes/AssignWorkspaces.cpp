//===- AssignWorkspaces.cpp - Plans the scratch memory of library calls ----------===//
//
// A library that allocates behind the planner's back would make the plan a lie, so the scratch memory of
// every matrix product is an allocation like any other. How much the product asks for is the library's own
// answer, on this machine and for the program's number of threads; the runtime holds it to that.
//
//===---------------------------------------------------------------------------===//
#include "RuntimeBuffer.h"
#include "ds/Passes/Passes.h"
#include "ds/Runtime/OnednnPlugin.h"

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
  if (call.getCallee() != "matmul")
    return uint64_t(0);
  SmallVector<::ds::rt::Buffer> operands = llvm::map_to_vector(
      call.getBuffers(), [](Value buffer) { return toRuntimeBuffer(cast<BufferType>(buffer.getType()), 0); });
  SmallVector<int64_t> params = integerParams(call);
  const ::ds::rt::Buffer *bias = operands.size() > 3 ? &operands[3] : nullptr;
  return ::ds::rt::matmulScratchpadBytes(
      ::ds::rt::describeMatmul(operands[0], operands[1], operands[2], bias, params.data()), threads);
}

namespace {
struct AssignWorkspaces : mlir::ds::impl::AssignWorkspacesBase<AssignWorkspaces> {
  using AssignWorkspacesBase::AssignWorkspacesBase;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](CallOp call) {
      ::ds::Result<uint64_t> bytes = scratchBytes(call, threads);
      if (!bytes) {
        call.emitOpError("has an unknown workspace: ") << bytes.error().message;
        return WalkResult::interrupt();
      }
      if (*bytes == 0)
        return WalkResult::advance();
      OpBuilder builder(call);
      auto type = RankedTensorType::get({static_cast<int64_t>(*bytes)}, builder.getI8Type());
      auto alloc = builder.create<AllocOp>(call.getLoc(), BufferType::getContiguous(type),
                                           builder.getStringAttr("workspace"), IntegerAttr());
      call.getWorkspaceMutable().assign(alloc.getBuffer());
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
