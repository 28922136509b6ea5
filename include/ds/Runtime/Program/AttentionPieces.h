//===- AttentionPieces.h - Attention by cuDNN, in pieces that fit a workspace ----===//
//
// cuDNN adds up the gradient of the queries with atomic operations, in an order that differs from run to run,
// unless it may keep all gradients of the scores: 16 bits for each pair of a query and a key. At long
// sequences that is more than the rest of the model, but samples and key heads do not depend on one another.
// So a command is cut into equal pieces that run one after another in the same workspace.
//
// The compiler plans that workspace without asking the library, which need not be there. The formula is an
// upper bound: a test holds it against what the library itself says. The runtime takes an engine that fits,
// and its own kernels, which need no workspace, where none does.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H
#define DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H

#include "ds/Runtime/Program/AttentionParams.h"

namespace ds::rt {

/// Of which an address in the workspace is a multiple, in bytes.
inline constexpr uint64_t kAttentionAlignment = 256;

/// What a piece takes at most, where it can: enough work for a GPU, and little beside the activations.
inline constexpr uint64_t kUsualPieceBytes = uint64_t(256) << 20;

/// Sizes of one piece, all pieces alike, and what they share.
struct AttentionPieces {
  int64_t batch;           ///< samples
  int64_t groups;          ///< key heads, each with all query heads that read it; all where batch > 1
  uint64_t rowSumBytes;    ///< at the start of the workspace: f32 sums of dout * out; 0 forward
  uint64_t workspaceBytes; ///< of the whole workspace, a multiple of kAttentionAlignment
};

/// What an attention is, whatever the layout of its operands.
struct AttentionSizes {
  uint64_t batch, queries, keys, heads;
  uint64_t groups; ///< key heads
  uint64_t size;   ///< elements of a head
};

/// As below, of a gradient with operands of 16 bits that lie as the engines want them.
std::optional<AttentionPieces> gradientPieces(const AttentionSizes &sizes, bool causal,
                                              uint64_t usual = kUsualPieceBytes);

/// How an attention command with these operands and params (Library.h) is cut for cuDNN; nothing for what
/// cuDNN is not asked: f32, head sizes and strides that are no multiple of 8 elements, masks of samples or
/// heads at no multiple of 4, causal attention with more queries than keys, windows, caps and slopes, which
/// the runtime's own kernels compute tile by tile, and gradients of which a single key head would take more
/// than 2 GiB. Else a piece takes at most `usual` bytes where one key head does not take more: the runtime
/// asks with what is planned, so that it finds what was planned. Operands are such as verifyProgram accepts,
/// but for the workspace.
std::optional<AttentionPieces> attentionPieces(LibraryFn fn, std::span<const Buffer *const> operands,
                                               const AttentionParams &params,
                                               uint64_t usual = kUsualPieceBytes);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H
