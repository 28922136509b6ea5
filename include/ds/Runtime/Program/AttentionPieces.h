//===- AttentionPieces.h - Attention by cuDNN, in pieces that fit a workspace ----===//
//
// cuDNN adds up the gradient of the queries with atomic operations, in an order that differs from run to run,
// unless it may keep all gradients of the scores: 16 bits for each pair of a query and a key. At long
// sequences that is more than the rest of the model, but samples and key heads do not depend on one another.
// So a command is cut into equal pieces that run one after another in the same workspace.
//
// Of a long sequence one key head alone is too much: at 32,768 tokens and four query heads a key head 8 GiB.
// Then its scores are cut into blocks. Forward has kept the logarithm of each row's sum, so blocks do not
// depend on one another either; each gives a part of the gradients, and parts are added up in f32, in the
// order of the blocks, and rounded once. With 16,384 queries and as many keys, causal, in blocks of 4096:
//
//      keys       0  4096  8192  12288
//   queries 0     D                         D: the diagonal, causal within itself
//        4096     F     D                   F: nothing of it is hidden
//        8192     F     F     D
//       12288     F     F     F      D      10 blocks, of two engines
//
// A window leaves a piece of queries few keys, so that its scores are cut by queries alone, each piece with
// the keys that it sees: the engine writes the gradients of its queries, and those of keys, which pieces
// share, are added up as above. Of 131,072 queries in pieces of 4096, each of which sees 4096 keys, the third
// has queries 8192 to 12287 and keys 4096 to 12287. Dropout forward, which keeps a number for each
// probability, is cut by queries too.
//
// How it is cut follows from sizes alone, never from how much memory there is: bits depend on it.
//
// Where bits may differ from run to run ("attention": "fast"), the atomic operations are asked for: they add
// to f32 gradients of the queries, 4 bytes for each of their elements and as many that some engines want
// besides, however long the sequence is.
//
// Dropout is a factor in memory, 1 or 0 for each probability, which a kernel draws before a piece runs: the
// CPU's numbers, where the library's own would be others.
//
// The compiler plans that workspace without asking the library, which need not be there. The formula is an
// upper bound: a test holds it against what the library itself says. The runtime takes an engine that fits,
// and its own kernels, which need no workspace, where none does.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H
#define DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H

#include "ds/Runtime/Program/AttentionParams.h"

#include <vector>

namespace ds::rt {

/// Of which an address in the workspace is a multiple, in bytes.
inline constexpr uint64_t kAttentionAlignment = 256;

/// Of which the size of a block is a multiple, so that rows of masks in it start on 16 bytes.
inline constexpr int64_t kAttentionBlockUnit = 8;

/// What a piece takes at most, where it can: enough work for a GPU, and little beside the activations.
inline constexpr uint64_t kUsualPieceBytes = uint64_t(256) << 20;

/// What lies before an engine's own part of the workspace, each on kAttentionAlignment, in this order: what
/// dropout leaves of a piece's probabilities, 1 or 0 for each in 16 bits; f32 sums of dout * out; the f32
/// sums of gradients of a fast piece's queries, which it adds to, or of one block's, and of blocks those of
/// all keys and values, and the parts of them that one block gives, in 16 bits; of blocks with slopes the
/// logarithms of their rows' sums, as rows and columns of the block count. 0 where there is none.
struct AttentionScratch {
  uint64_t dropMask = 0;
  uint64_t rowSums = 0, querySums = 0, keySums = 0, valueSums = 0, queryPart = 0, keyPart = 0, valuePart = 0;
  uint64_t blockLse = 0;
  uint64_t bytes() const {
    return dropMask + rowSums + querySums + keySums + valueSums + queryPart + keyPart + valuePart + blockLse;
  }
};

/// Sizes of one piece, all pieces alike, and what they share.
struct AttentionPieces {
  int64_t batch;                ///< samples
  int64_t groups;               ///< key heads, each with all query heads that read it; all where batch > 1
  std::optional<int64_t> block; ///< queries and keys of a block; none: a piece is not cut further
  bool isByQueries;             ///< a block has the queries of `block` and all keys that they see
  AttentionScratch scratch;
  uint64_t workspaceBytes; ///< of the whole workspace, a multiple of kAttentionAlignment
};

/// A block of the scores of one key head and its query heads.
struct AttentionBlock {
  int64_t firstQuery, queries, firstKey, keys;
  int64_t own;                     ///< key of the block at which its first query stands, or would
  bool isCausal;                   ///< within itself
  bool beginsQueries, endsQueries; ///< it is the first block of its queries, the last one
  int64_t summedKeys, endedKeys; ///< of its keys the first so many have had a block before, have none behind
};

/// What an attention is, whatever the layout of its operands.
struct AttentionSizes {
  uint64_t batch, queries, keys, heads;
  uint64_t groups; ///< key heads
  uint64_t size;   ///< elements of a head
};

/// The sizes of a command with these operands.
AttentionSizes attentionSizes(std::span<const Buffer *const> operands);

/// What a workspace depends on besides sizes.
struct AttentionForm {
  bool isGradient = true;
  bool isCausal = false;
  bool isFast = false;                ///< a gradient whose bits may differ from run to run
  std::optional<int64_t> window = {}; ///< positions that a query sees: to one side, its own included
  bool drops = false;                 ///< dropout
  bool hasSlopes = false;
};

/// The blocks of `block` queries and keys in the order in which they are computed: by queries, then by keys.
/// Those that causality hides are left out. Requires no fewer keys than queries if `causal`.
std::vector<AttentionBlock> attentionBlocks(int64_t queries, int64_t keys, bool causal, int64_t block);

/// The blocks of `rows` queries and the keys that they see, in the order of the queries. The first key of
/// each is a multiple of kAttentionBlockUnit, and the first block has all keys that no query sees. Requires
/// that each query sees a key.
std::vector<AttentionBlock> attentionBands(const AttentionSizes &sizes, const AttentionForm &form,
                                           int64_t rows);

/// Whether what is cut into blocks is cut by queries alone: forward, and gradients with a window.
bool isCutByQueries(const AttentionSizes &sizes, const AttentionForm &form);

/// How large blocks are, where one key head's scores are too many for one piece: a power of two with at most
/// 256 MiB of scores, or larger where there would be more than 16 rows of them, up to 1 GiB. Then equal ones.
/// By queries it is their number, and with a window 16 blocks that see the same key are many. Nothing for
/// forms that keep nothing of each score. A fast gradient with so much dropout is computed in blocks, as an
/// exact one.
std::optional<int64_t> attentionBlockSize(const AttentionSizes &sizes, const AttentionForm &form);

/// The form of a command with these operands and params (Library.h).
AttentionForm attentionForm(LibraryFn fn, std::span<const Buffer *const> operands,
                            const AttentionParams &params);

/// As below, with operands of 16 bits that lie as the engines want them.
std::optional<AttentionPieces> attentionPieces(const AttentionSizes &sizes, const AttentionForm &form,
                                               uint64_t usual = kUsualPieceBytes);

/// Why cuDNN is not asked for an attention: the runtime's own kernels compute it tile by tile, in f32.
enum class AttentionRefusal {
  SinglePrecision, ///< operands are f32
  Slopes,          ///< with other keys than queries
  HeadSize,        ///< no multiple of 8 elements, or above 256
  Alignment,       ///< strides that are no multiple of 8 elements
  Mask,            ///< of samples, heads or blocks that begin at no multiple of 4 elements
  Blind,           ///< some queries see no key: causal or with a window, with more queries than keys
  Engine,          ///< of the compiler alone: the GPU that is compiled for has no engine for such a gradient
  Length,          ///< more scores of a key head than a piece, or the smallest block, can have
  Empty
};

/// Why it is not asked for one with these operands and params (Library.h); nothing where it is. Operands are
/// such as verifyProgram accepts, but for the workspace.
std::optional<AttentionRefusal> attentionRefusal(LibraryFn fn, std::span<const Buffer *const> operands,
                                                 const AttentionParams &params);

/// "a window": what cuDNN is not asked for.
const char *spell(AttentionRefusal refusal);

/// How an attention command with these operands and params is cut for cuDNN; nothing where it is refused. A
/// piece takes at most `usual` bytes where one key head does not take more, and one key head where it is cut
/// into blocks: the runtime asks with what is planned, so that it finds what was planned.
std::optional<AttentionPieces> attentionPieces(LibraryFn fn, std::span<const Buffer *const> operands,
                                               const AttentionParams &params,
                                               uint64_t usual = kUsualPieceBytes);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_ATTENTIONPIECES_H
