//===- AttentionParams.h - What an attention command says besides its tensors ----===//
//
// The params and the optional operands of both attention commands (Library.h), read in one place by whoever
// checks, counts, plans or launches them. The kernels of kernels/ read them on their own: they share no code
// between instruction sets.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_ATTENTIONPARAMS_H
#define DS_RUNTIME_PROGRAM_ATTENTIONPARAMS_H

#include "ds/Runtime/Program/Program.h"

#include <optional>
#include <span>

namespace ds::rt {

/// Params that all have; those of a window and a cap behind them, and of dropout behind those; at the end, of
/// a gradient and of dropout the size of blocks, or of a gradient that it is fast.
inline constexpr unsigned kAttentionParams = 2, kAttentionFormParams = 2, kAttentionDropoutParams = 3,
                          kAttentionBlockParams = 1;

/// In the place of a block's size: the gradient may be added up in any order.
inline constexpr int64_t kFastGradient = 0;

/// Operands before the mask, the slopes, the generator and the first head.
constexpr unsigned fixedAttentionOperands(LibraryFn fn) { return fn == LibraryFn::AttentionBackward ? 9 : 5; }

/// What of the probabilities is dropped (Library.h).
struct AttentionDropout {
  double probability;
  int64_t id;    ///< of the draw
  int64_t heads; ///< of the attention of which these are some or all
};

struct AttentionParams {
  bool isCausal = false;
  double scale = 1;
  std::optional<int64_t> window = {}; ///< positions that a query sees: to one side, its own included
  std::optional<double> cap = {};     ///< of a score before masks
  std::optional<int64_t> block =
      {};              ///< by cuDNN: queries of a block, and mostly its keys (AttentionPieces.h)
  bool isFast = false; ///< of a gradient by cuDNN: its terms may be added up in any order
  std::optional<AttentionDropout> dropout = {};
};

/// Whether the last of so many params is about blocks.
constexpr bool hasAttentionBlock(size_t numParams) {
  constexpr unsigned form = kAttentionParams + kAttentionFormParams, drawn = form + kAttentionDropoutParams;
  return numParams == kAttentionParams + kAttentionBlockParams || numParams == form + kAttentionBlockParams ||
         numParams == drawn + kAttentionBlockParams;
}

/// Requires as many params as an attention has.
AttentionParams attentionParams(std::span<const int64_t> params);

/// The optional operands; null where a command has none of the kind. Their ranks and types tell them apart.
struct AttentionExtras {
  const Buffer *mask = nullptr;
  const Buffer *slopes = nullptr;
  const Buffer *generator = nullptr; ///< (seed, counter) of dropout
  const Buffer *firstHead = nullptr; ///< of those that dropout counts
  unsigned count() const {
    return (mask ? 1 : 0) + (slopes ? 1 : 0) + (generator ? 1 : 0) + (firstHead ? 1 : 0);
  }
};
AttentionExtras attentionExtras(LibraryFn fn, std::span<const Buffer *const> operands);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_ATTENTIONPARAMS_H
