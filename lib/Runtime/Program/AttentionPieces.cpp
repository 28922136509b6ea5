//===- AttentionPieces.cpp - Attention by cuDNN, in pieces that fit a workspace --===//
#include "ds/Runtime/Program/AttentionPieces.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <algorithm>

namespace ds::rt {
namespace {

/// Bytes of the scores of one key head that are not cut into blocks, and of a block; 2^29 scores at most,
/// which 32 bits can count. Usual is a block of fewer bytes.
constexpr uint64_t kMostScores = uint64_t(1) << 30, kUsualBlockScores = uint64_t(256) << 20;
/// Rows of blocks that are computed before larger ones are taken: their number grows with the square.
constexpr int64_t kUsualBlockRows = 16;
constexpr int64_t kBlockRound = 128; ///< of which a block is a multiple, as tiles of engines are
constexpr uint64_t kFixed = 512;     ///< bytes of counters and descriptors that engines ask for besides
constexpr int64_t kVector = 8;       ///< 16-bit elements in 16 bytes, which the engines load at once
constexpr int64_t kMaskVector = 4;   ///< f32 elements in 16 bytes
constexpr uint64_t kMaxHead = 256;   ///< of any engine

using Sizes = AttentionSizes;

uint64_t divideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

bool isNarrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

/// Whether rows and heads of a 16-bit operand can be loaded 16 bytes at once.
bool isAligned(const Buffer &buffer) {
  return buffer.strides[3] == 1 && std::all_of(buffer.strides.begin(), buffer.strides.end() - 1,
                                               [](int64_t stride) { return stride % kVector == 0; });
}

/// Whether the mask of any piece starts on 16 bytes, if the whole does.
bool isAlignedMask(const Buffer &mask) {
  const auto isAligned = [&](size_t d) { return mask.shape[d] == 1 || mask.strides[d] % kMaskVector == 0; };
  return mask.strides[3] == 1 && isAligned(0) && isAligned(1);
}

/// Bytes that the gradient of `heads` query heads over `batch` samples needs besides the row sums: scores in
/// 16 bits in whole tiles, and the gradients of keys and values for each query head where several share one.
uint64_t gradientBytes(const Sizes &s, uint64_t batch, uint64_t heads) {
  const uint64_t keys = alignTo(s.keys, 128), scores = 2 * batch * heads * alignTo(s.queries, 64) * keys;
  const uint64_t shared = s.heads > s.groups ? 4 * batch * heads * keys * s.size : 0;
  return scores + shared + kFixed;
}

AttentionPieces pieceOf(const Sizes &s, uint64_t batch, uint64_t groups, bool gradient) {
  const uint64_t heads = groups * (s.heads / s.groups);
  AttentionScratch scratch;
  scratch.rowSums = gradient ? alignTo(4 * batch * heads * s.queries, kAttentionAlignment) : 0;
  const uint64_t engine = gradient ? gradientBytes(s, batch, heads) : kFixed;
  return {static_cast<int64_t>(batch), static_cast<int64_t>(groups), std::nullopt, scratch,
          alignTo(scratch.rowSums + engine, kAttentionAlignment)};
}

/// One key head in blocks of `block` queries and keys.
AttentionPieces blocksOf(const Sizes &s, uint64_t block) {
  const uint64_t heads = s.heads / s.groups, queries = std::min(block, s.queries),
                 keys = std::min(block, s.keys);
  const auto bytes = [&](uint64_t width, uint64_t rows) {
    return alignTo(width * rows * s.size, kAttentionAlignment);
  };
  AttentionScratch scratch;
  scratch.rowSums = alignTo(4 * heads * queries, kAttentionAlignment);
  scratch.querySums = bytes(4, heads * queries);
  scratch.keySums = scratch.valueSums = bytes(4, s.keys);
  scratch.queryPart = bytes(2, heads * queries);
  scratch.keyPart = scratch.valuePart = bytes(2, keys);
  Sizes one = s;
  one.queries = queries;
  one.keys = keys;
  return {1, 1, static_cast<int64_t>(block), scratch,
          alignTo(scratch.bytes() + gradientBytes(one, 1, heads), kAttentionAlignment)};
}

/// Bytes of the scores of one key head.
uint64_t scoreBytes(const Sizes &s, uint64_t queries, uint64_t keys) {
  return 2 * (s.heads / s.groups) * queries * keys;
}

/// The largest piece within `usual` bytes: whole samples if one fits, else key heads of one sample. Pieces
/// are alike, so that one engine runs them all.
AttentionPieces cut(const Sizes &s, uint64_t usual) {
  for (uint64_t batch = s.batch; batch > 0; --batch)
    if (s.batch % batch == 0)
      if (AttentionPieces piece = pieceOf(s, batch, s.groups, true); piece.workspaceBytes <= usual)
        return piece;
  for (uint64_t groups = s.groups; groups > 1; --groups)
    if (s.groups % groups == 0)
      if (AttentionPieces piece = pieceOf(s, 1, groups, true); piece.workspaceBytes <= usual)
        return piece;
  return pieceOf(s, 1, 1, true);
}

/// Whether engines take an attention of these sizes.
bool isTaken(const Sizes &s, bool causal) {
  const bool empty = s.batch * s.queries * s.keys * s.heads == 0;
  const bool blind =
      causal && s.queries > s.keys; // the first queries see no key: engines divide by their sum
  return !empty && !blind && s.size % kVector == 0 && s.size <= kMaxHead;
}

} // namespace

std::optional<int64_t> attentionBlockSize(const AttentionSizes &s) {
  if (s.groups == 0 || scoreBytes(s, s.queries, s.keys) <= kMostScores)
    return std::nullopt;
  const uint64_t longer = std::max(s.queries, s.keys);
  uint64_t block = kBlockRound;
  const auto mayGrow = [&](uint64_t most) { return scoreBytes(s, 2 * block, 2 * block) <= most; };
  while (mayGrow(kUsualBlockScores) || (longer > block * kUsualBlockRows && mayGrow(kMostScores)))
    block *= 2;
  const uint64_t count = divideUp(longer, block);
  return static_cast<int64_t>(alignTo(divideUp(longer, count), kBlockRound));
}

std::vector<AttentionBlock> attentionBlocks(int64_t queries, int64_t keys, bool causal, int64_t block) {
  std::vector<AttentionBlock> blocks;
  for (int64_t q = 0; q < queries; q += block) {
    const int64_t rows = std::min(block, queries - q), open = causal ? q + (keys - queries) : keys;
    AttentionBlock next{q, rows, 0, 0, false, true, false, q == 0, q + rows == queries};
    for (int64_t k = 0; k < open; k += block) {
      next.firstKey = k;
      next.keys = std::min(block, open - k);
      next.endsQueries = !causal && k + next.keys == open;
      blocks.push_back(next);
      next.beginsQueries = false;
    }
    if (!causal)
      continue;
    next.firstKey = open;
    next.keys = rows;
    next.isDiagonal = next.endsQueries = next.beginsKeys = true;
    blocks.push_back(next);
  }
  return blocks;
}

std::optional<AttentionPieces> gradientPieces(const AttentionSizes &sizes, bool causal, uint64_t usual) {
  if (!isTaken(sizes, causal))
    return std::nullopt;
  const std::optional<int64_t> block = attentionBlockSize(sizes);
  return block ? blocksOf(sizes, static_cast<uint64_t>(*block)) : cut(sizes, usual);
}

std::optional<AttentionPieces> attentionPieces(LibraryFn fn, std::span<const Buffer *const> operands,
                                               const AttentionParams &params, uint64_t usual) {
  const bool gradient = fn == LibraryFn::AttentionBackward;
  const size_t numOperands = fixedAttentionOperands(fn);
  const AttentionExtras extras = attentionExtras(fn, operands);
  const Buffer &q = *operands[0], &k = *operands[1], &lse = *operands[4];
  if (!isNarrow(q.dtype) || params.window || params.cap || extras.slopes)
    return std::nullopt;
  if (extras.mask && !isAlignedMask(*extras.mask))
    return std::nullopt;
  const Sizes s{static_cast<uint64_t>(q.shape[0]), static_cast<uint64_t>(q.shape[1]),
                static_cast<uint64_t>(k.shape[1]), static_cast<uint64_t>(q.shape[2]),
                static_cast<uint64_t>(k.shape[2]), static_cast<uint64_t>(q.shape[3])};
  if (!isTaken(s, params.isCausal) || !isContiguous(lse))
    return std::nullopt;
  for (size_t i = 0; i < numOperands; ++i)
    if (i != 4 && !isAligned(*operands[i]))
      return std::nullopt;
  if (!gradient)
    return pieceOf(s, s.batch, s.groups, false);
  if (!params.block)
    return scoreBytes(s, s.queries, s.keys) < 2 * kMostScores ? std::optional(cut(s, usual)) : std::nullopt;
  // Masks of all blocks start on 16 bytes, those behind the keys that every query sees too.
  if (extras.mask && params.isCausal && (s.keys - s.queries) % kMaskVector != 0)
    return std::nullopt;
  return blocksOf(s, static_cast<uint64_t>(*params.block));
}

} // namespace ds::rt
