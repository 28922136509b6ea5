//===- AttentionPieces.cpp - Attention by cuDNN, in pieces that fit a workspace --===//
#include "ds/Runtime/Program/AttentionPieces.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <utility>

namespace ds::rt {
namespace {

/// Bytes of the scores of one key head that are not cut into blocks, and of a block; 2^29 scores at most,
/// which 32 bits can count. Usual is a block of fewer bytes.
constexpr uint64_t kMostScores = uint64_t(1) << 30, kUsualBlockScores = uint64_t(256) << 20;
/// Rows of blocks that are computed before larger ones are taken: their number grows with the square.
constexpr int64_t kUsualBlockRows = 16;
constexpr int64_t kBlockRound = 128; ///< of which a block is a multiple, as tiles of engines are
constexpr uint64_t kSumRows = 64;    ///< queries of an engine's tile
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

/// Bytes of the gradients of keys and values for each query head, in whole tiles, where several share one.
uint64_t sharedBytes(const Sizes &s, uint64_t batch, uint64_t heads) {
  return s.heads > s.groups ? 4 * batch * heads * alignTo(s.keys, kBlockRound) * s.size : 0;
}

/// Bytes that the gradient of `heads` query heads over `batch` samples needs besides the row sums: scores in
/// 16 bits in whole tiles, and what is of each query head.
uint64_t gradientBytes(const Sizes &s, uint64_t batch, uint64_t heads) {
  const uint64_t keys = alignTo(s.keys, kBlockRound),
                 scores = 2 * batch * heads * alignTo(s.queries, kSumRows) * keys;
  return scores + sharedBytes(s, batch, heads) + kFixed;
}

/// What a piece computes: forward, the gradient to the bit, or in any order.
enum class PieceKind { Forward, Exact, Fast };
struct Kind {
  PieceKind kind;
  bool drops; ///< some probabilities
};

AttentionPieces pieceOf(const Sizes &s, uint64_t batch, uint64_t groups, const Kind &what) {
  const auto [kind, drops] = what;
  const uint64_t heads = groups * (s.heads / s.groups);
  AttentionScratch scratch;
  uint64_t engine = kFixed;
  if (drops)
    scratch.dropMask = alignTo(2 * batch * heads * s.queries * s.keys, kAttentionAlignment);
  if (kind != PieceKind::Forward)
    scratch.rowSums = alignTo(4 * batch * heads * s.queries, kAttentionAlignment);
  if (kind == PieceKind::Exact)
    engine = gradientBytes(s, batch, heads);
  if (kind == PieceKind::Fast) {
    scratch.querySums =
        alignTo(4 * batch * heads * alignTo(s.queries, kSumRows) * s.size, kAttentionAlignment);
    engine += scratch.querySums + sharedBytes(s, batch, heads); // on sm_80 engines have sums of their own
  }
  return {static_cast<int64_t>(batch), static_cast<int64_t>(groups), std::nullopt, scratch,
          alignTo(scratch.bytes() + engine, kAttentionAlignment)};
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
AttentionPieces cut(const Sizes &s, const Kind &kind, uint64_t usual) {
  for (uint64_t batch = s.batch; batch > 0; --batch)
    if (s.batch % batch == 0)
      if (AttentionPieces piece = pieceOf(s, batch, s.groups, kind); piece.workspaceBytes <= usual)
        return piece;
  for (uint64_t groups = s.groups; groups > 1; --groups)
    if (s.groups % groups == 0)
      if (AttentionPieces piece = pieceOf(s, 1, groups, kind); piece.workspaceBytes <= usual)
        return piece;
  return pieceOf(s, 1, 1, kind);
}

/// Whether a piece of one key head, not cut into blocks, would keep more than one can: a score in 16 bits of
/// exact gradients, and what dropout leaves of each.
bool isTooLong(const Sizes &s, const AttentionForm &form) {
  const bool keepsScores = form.drops || (form.isGradient && !form.isFast);
  return keepsScores && scoreBytes(s, s.queries, s.keys) >= 2 * kMostScores;
}

/// Why engines do not take an attention of these sizes, if they do not.
std::optional<AttentionRefusal> sizeRefusal(const Sizes &s, bool causal) {
  if (s.batch * s.queries * s.keys * s.heads == 0)
    return AttentionRefusal::Empty;
  if (s.size % kVector != 0 || s.size > kMaxHead)
    return AttentionRefusal::HeadSize;
  if (causal && s.queries > s.keys) // the first queries see no key: engines divide by their sum
    return AttentionRefusal::Blind;
  return std::nullopt;
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

std::optional<AttentionPieces> attentionPieces(const AttentionSizes &sizes, const AttentionForm &form,
                                               uint64_t usual) {
  if (sizeRefusal(sizes, form.isCausal))
    return std::nullopt;
  const std::optional<int64_t> block = attentionBlockSize(sizes);
  const bool hasForm = form.hasBand || form.drops;
  if (form.isGradient && !form.isFast && !hasForm && block)
    return blocksOf(sizes, static_cast<uint64_t>(*block));
  if (isTooLong(sizes, form))
    return std::nullopt;
  if (!form.isGradient && !form.drops)
    return pieceOf(sizes, sizes.batch, sizes.groups, {PieceKind::Forward, false});
  const PieceKind kind = !form.isGradient ? PieceKind::Forward
                         : form.isFast    ? PieceKind::Fast
                                          : PieceKind::Exact;
  return cut(sizes, {kind, form.drops}, usual);
}

AttentionSizes attentionSizes(std::span<const Buffer *const> operands) {
  const Buffer &q = *operands[0], &k = *operands[1];
  const auto size = [](const Buffer &buffer, size_t dim) { return static_cast<uint64_t>(buffer.shape[dim]); };
  return {size(q, 0), size(q, 1), size(k, 1), size(q, 2), size(k, 2), size(q, 3)};
}

/// Whether the operands lie as engines want them.
static bool areAligned(LibraryFn fn, std::span<const Buffer *const> operands) {
  constexpr size_t kLse = 4;
  if (!isContiguous(*operands[kLse]))
    return false;
  for (size_t i = 0; i < fixedAttentionOperands(fn); ++i)
    if (i != kLse && !isAligned(*operands[i]))
      return false;
  return true;
}

static AttentionForm formOf(LibraryFn fn, const AttentionParams &params) {
  return {fn == LibraryFn::AttentionBackward, params.isCausal, params.isFast, params.window || params.cap,
          params.dropout.has_value()};
}

std::optional<AttentionRefusal> attentionRefusal(LibraryFn fn, std::span<const Buffer *const> operands,
                                                 const AttentionParams &params) {
  using enum AttentionRefusal;
  const AttentionExtras extras = attentionExtras(fn, operands);
  const Sizes s = attentionSizes(operands);
  // Masks of all blocks start on 16 bytes, those behind the keys that every query sees too.
  const bool isShifted = params.block && params.isCausal && (s.keys - s.queries) % kMaskVector != 0;
  const std::pair<AttentionRefusal, bool> forms[] = {{SinglePrecision, !isNarrow(operands[0]->dtype)},
                                                     {Slopes, extras.slopes && s.queries != s.keys}};
  for (const auto &[refusal, holds] : forms)
    if (holds)
      return refusal;
  if (const std::optional<AttentionRefusal> refusal = sizeRefusal(s, params.isCausal))
    return refusal;
  // The first query stands before the first key by as many keys as there are fewer.
  if (params.window && s.queries >= s.keys + static_cast<uint64_t>(*params.window))
    return Blind;
  if (extras.mask && (!isAlignedMask(*extras.mask) || isShifted))
    return Mask;
  if (!areAligned(fn, operands))
    return Alignment;
  return !params.block && isTooLong(s, formOf(fn, params)) ? std::optional(Length) : std::nullopt;
}

const char *spell(AttentionRefusal refusal) {
  switch (refusal) {
  case AttentionRefusal::SinglePrecision:
    return "f32";
  case AttentionRefusal::Slopes:
    return "slopes of positions with more keys than queries";
  case AttentionRefusal::HeadSize:
    return "heads that are no multiple of 8 elements, or more than 256";
  case AttentionRefusal::Alignment:
    return "operands whose rows do not begin on 16 bytes";
  case AttentionRefusal::Mask:
    return "a mask whose parts do not begin on 16 bytes";
  case AttentionRefusal::Blind:
    return "queries that see no key";
  case AttentionRefusal::Engine:
    return "gradients under a cap or of heads above 128 before sm_90";
  case AttentionRefusal::Length:
    return "so many scores without blocks";
  case AttentionRefusal::Empty:
    return "no elements";
  }
  return "";
}

std::optional<AttentionPieces> attentionPieces(LibraryFn fn, std::span<const Buffer *const> operands,
                                               const AttentionParams &params, uint64_t usual) {
  if (attentionRefusal(fn, operands, params))
    return std::nullopt;
  const Sizes s = attentionSizes(operands);
  if (params.block)
    return blocksOf(s, static_cast<uint64_t>(*params.block));
  AttentionForm form = formOf(fn, params);
  const bool isExact = form.isGradient && !form.isFast;
  if (isExact) // a command without a block is not cut into any
    return cut(s, {PieceKind::Exact, form.drops}, usual);
  return attentionPieces(s, form, usual);
}

} // namespace ds::rt
