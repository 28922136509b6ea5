//===- Workspaces.h - How much scratch memory a library call is to have -----------===//
//
// How much a library asks for is its own answer, on this machine and for the program's number of threads; the
// runtime holds it to that. The kernels that sum 16-bit gradients in f32 or many tensors at once name theirs
// in Library.h.
//
// Programs for CUDA are compiled where cuBLASLt cannot be asked, for it answers only beside a GPU. There the
// plan sets a budget and the runtime chooses among the algorithms within it, with room for copies of operands
// with odd rows where a product on copies is predicted to be faster (PackedRows.h). So it does for attention
// and convolutions, which cuDNN computes where it is (AttentionPieces.h, ConvForm.h). Sums of squares need
// what they need on the CPU, the other kernels nothing, and NCCL's buffers are NCCL's own.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_WORKSPACES_H
#define DS_PASSES_WORKSPACES_H

#include "ds/Dialect/Ds.h"
#include "ds/Support/Error.h"

#include <limits>

namespace mlir::ds {

/// Of which the workspaces of cuBLASLt and cuDNN are to be multiples.
inline constexpr int64_t kCudaAlignment = 256;

struct WorkspaceLimits {
  uint32_t threads = 1; ///< of the program
  /// Of a piece of attention's gradient where one key head does not take more; 0: none, the runtime's own
  /// kernels compute it.
  uint64_t attentionBytes = 0;
  /// Bytes that are free while the call runs. Attention's gradient has a choice: of pieces that do not fit it
  /// takes smaller ones, by halves, and in the end none. Products do without copies.
  int64_t room = std::numeric_limits<int64_t>::max();
};

/// What the machine of `module` says of them.
WorkspaceLimits limitsOf(ModuleOp module);

/// Bytes that cuBLASLt may use on `target` for a product of `elements` elements: sixteen partial results in
/// f32, for products whose sum is split, and no more than NVIDIA recommends for the architecture.
uint64_t blasBytes(int64_t elements, StringRef target);

/// Bytes of scratch memory that `call` is to have, or why that is unknown.
::ds::Result<uint64_t> workspaceBytes(CallOp call, const WorkspaceLimits &limits);
/// The same of a call on the host's cores, for any number of them.
::ds::Result<uint64_t> hostWorkspaceBytes(CallOp call);

} // namespace mlir::ds

#endif // DS_PASSES_WORKSPACES_H
