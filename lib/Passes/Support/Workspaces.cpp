//===- Workspaces.cpp - How much scratch memory a library call is to have ---------===//
#include "ds/Passes/Workspaces.h"

#include "RuntimeCall.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Runtime/Onednn/OnednnConv.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"
#include "ds/Runtime/Program/Library.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

WorkspaceLimits mlir::ds::limitsOf(ModuleOp module) {
  const Machine machine = getMachine(module);
  return {static_cast<uint32_t>(machine.threads), static_cast<uint64_t>(machine.attentionBytes)};
}

/// Bytes of scratch memory that `op` asks for on the CPU, or why that is unknown.
static ::ds::Result<uint64_t> scratchBytes(CallOp op, uint32_t threads) {
  const RuntimeCall call(op);
  if (rt::isConvolution(call.function)) {
    auto layout = rt::layoutConvWorkspace(call.convolution(), call.operand(0).dtype, threads);
    return layout ? ::ds::Result<uint64_t>(layout->bytes) : layout.error();
  }
  if (call.function != rt::LibraryFn::Matmul)
    return rt::libraryWorkspaceBytes(call.function, call.operands(), threads);
  const rt::Buffer *bias = rt::matmulExtras(call.operands(), {call.params.data(), call.params.size()}).bias;
  return rt::productWorkspaceBytes(
      rt::describeMatmul(call.operand(0), call.operand(1), call.operand(2), bias, call.params.data()),
      threads, rt::formOf({call.params.data(), call.params.size()}));
}

static_assert(kCudaAlignment % rt::kAttentionAlignment == 0);

uint64_t mlir::ds::blasBytes(int64_t elements, StringRef target) {
  const uint64_t partials = 16 * sizeof(float) * static_cast<uint64_t>(elements);
  const uint64_t most = uint64_t(target == "cuda:sm_90" ? 32 : 4) << 20;
  return std::min(most, llvm::alignTo(partials, kCudaAlignment));
}

/// Bytes that `call`, a product, may use: cuBLASLt's, and before them those of copies on which it is faster,
/// where there is room for both.
static uint64_t productBytes(CallOp call, const WorkspaceLimits &limits) {
  const int64_t elements = cast<BufferType>(call.getBuffers()[2].getType()).getTensor().getNumElements();
  const uint64_t library = blasBytes(elements, getTarget(call->getParentOfType<ModuleOp>()));
  if (!findPackedRows(call)) // as most: rates need not be read
    return library;
  const FailureOr<::ds::cost::Rates> rates = readRates(call);
  if (failed(rates))
    return library;
  const std::optional<rt::PackedRows> rows = choosePackedRows(call, rates->ofProgram());
  const auto room = static_cast<uint64_t>(std::max<int64_t>(limits.room, 0));
  return rows && library + rows->bytes <= room ? library + rows->bytes : library;
}

/// Bytes that an attention or its gradient gets: of the pieces that it is to have, or of the largest for
/// which there is room. 0 where cuDNN is not to be asked.
static uint64_t attentionBytes(CallOp call, const WorkspaceLimits &limits) {
  if (limits.attentionBytes == 0)
    return 0;
  std::optional<rt::AttentionPieces> usual = cudnnPieces(call, limits.attentionBytes);
  if (!usual)
    return 0;
  const uint64_t least = cudnnPieces(call, 1)->workspaceBytes;
  const auto room = static_cast<uint64_t>(std::max<int64_t>(limits.room, 0));
  uint64_t bytes = usual->workspaceBytes;
  for (uint64_t piece = llvm::bit_floor(limits.attentionBytes); bytes > room && bytes > least; piece /= 2)
    bytes = cudnnPieces(call, piece)->workspaceBytes;
  return bytes > room ? 0 : bytes;
}

/// Bytes that NVIDIA's libraries may use for `call`.
static uint64_t cudaBudget(CallOp call, const WorkspaceLimits &limits) {
  using rt::LibraryFn;
  const LibraryFn function = call.getCallee();
  if (function == LibraryFn::Matmul)
    return productBytes(call, limits);
  if (rt::isConvolution(function)) {
    const RuntimeCall convolution(call);
    return rt::cudnnConvBytes(convolution.convolution(), convolution.operand(0).dtype);
  }
  if (const uint64_t own = rt::cudaWorkspaceBytes(function, RuntimeCall(call).operands()))
    return own;
  if (function == LibraryFn::AttentionBackward || hasDropout(call))
    return attentionBytes(call, limits);
  auto pieces = cudnnPieces(call, limits.attentionBytes);
  return pieces ? pieces->workspaceBytes : 0;
}

::ds::Result<uint64_t> mlir::ds::hostWorkspaceBytes(CallOp call) { return scratchBytes(call, /*threads=*/1); }

::ds::Result<uint64_t> mlir::ds::workspaceBytes(CallOp call, const WorkspaceLimits &limits) {
  if (isForCuda(call->getParentOfType<ModuleOp>()))
    return cudaBudget(call, limits);
  return scratchBytes(call, limits.threads);
}
