//===- AttentionPieces.cpp - Attention by cuDNN, in pieces that fit a workspace --===//
#include "ds/Runtime/Program/AttentionPieces.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <algorithm>
#include <utility>

namespace ds::rt {
namespace {

/// Bytes of the scores of one key head that are not cut into blocks, and of a block; 2^29 scores at most,
/// which 32 bits can count.
constexpr uint64_t kMostScores = uint64_t(1) << 30;
constexpr uint64_t kBlockRound = 128; ///< of which a block is a multiple, as tiles of engines are
constexpr uint64_t kSumRows = 64;     ///< queries of an engine's tile
constexpr uint64_t kFixed = 512;      ///< bytes of counters and descriptors that engines ask for besides
constexpr int64_t kVector = 8;        ///< 16-bit elements in 16 bytes, which the engines load at once
constexpr int64_t kMaskVector = 4;    ///< f32 elements in 16 bytes
constexpr uint64_t kMaxHead = 256;    ///< of any engine

using Sizes = AttentionSizes;

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

/// Bytes of so many scores of one key head, or of what dropout leaves of them.
uint64_t scoreBytes(const Sizes &s, uint64_t queries, uint64_t keys) {
  return 2 * (s.heads / s.groups) * queries * keys;
}

/// Whether something is kept of each score: a gradient in 16 bits, and what dropout leaves.
bool keepsScores(const AttentionForm &form) { return form.drops || (form.isGradient && !form.isFast); }

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
  return {static_cast<int64_t>(batch),
          static_cast<int64_t>(groups),
          std::nullopt,
          false,
          scratch,
          alignTo(scratch.bytes() + engine, kAttentionAlignment)};
}

/// Queries and keys that a block has at most.
std::pair<uint64_t, uint64_t> blockSizes(const Sizes &s, const AttentionForm &form, uint64_t block) {
  const uint64_t queries = std::min(block, s.queries);
  uint64_t keys = 0;
  if (!isCutByQueries(s, form))
    return {queries, std::min(block, s.keys)};
  for (const AttentionBlock &each : attentionBands(s, form, static_cast<int64_t>(block)))
    keys = std::max(keys, static_cast<uint64_t>(each.keys));
  return {queries, keys};
}

/// One key head in blocks of `block` queries.
AttentionPieces blocksOf(const Sizes &s, const AttentionForm &form, uint64_t block) {
  const uint64_t heads = s.heads / s.groups;
  const bool isByQueries = isCutByQueries(s, form);
  const auto [queries, keys] = blockSizes(s, form, block);
  const auto bytes = [&](uint64_t width, uint64_t rows) {
    return alignTo(width * rows * s.size, kAttentionAlignment);
  };
  AttentionScratch scratch;
  uint64_t engine = kFixed;
  if (form.drops)
    scratch.dropMask = alignTo(scoreBytes(s, queries, keys), kAttentionAlignment);
  if (form.isGradient) {
    scratch.rowSums = alignTo(4 * heads * queries, kAttentionAlignment);
    scratch.querySums = isByQueries ? 0 : bytes(4, heads * queries);
    scratch.keySums = scratch.valueSums = bytes(4, s.keys);
    scratch.queryPart = isByQueries ? 0 : bytes(2, heads * queries);
    scratch.keyPart = scratch.valuePart = bytes(2, keys);
    scratch.blockLse = form.hasSlopes ? scratch.rowSums : 0;
    Sizes one = s;
    one.queries = queries;
    one.keys = keys;
    engine = gradientBytes(one, 1, heads);
  }
  return {1,           1,       static_cast<int64_t>(block),
          isByQueries, scratch, alignTo(scratch.bytes() + engine, kAttentionAlignment)};
}

/// The divisors of `number`, the largest first.
std::vector<uint64_t> divisorsOf(uint64_t number) {
  std::vector<uint64_t> large, small;
  for (uint64_t divisor = 1; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) {
      large.push_back(number / divisor);
      if (divisor * divisor < number)
        small.push_back(divisor);
    }
  large.insert(large.end(), small.rbegin(), small.rend());
  return large;
}

/// The largest piece within `usual` bytes: whole samples if one fits, else key heads of one sample. Pieces
/// are alike, so that one engine runs them all.
AttentionPieces cut(const Sizes &s, const Kind &kind, uint64_t usual) {
  for (uint64_t batch : divisorsOf(s.batch))
    if (AttentionPieces piece = pieceOf(s, batch, s.groups, kind); piece.workspaceBytes <= usual)
      return piece;
  for (uint64_t groups = s.groups; groups > 1; --groups)
    if (s.groups % groups == 0)
      if (AttentionPieces piece = pieceOf(s, 1, groups, kind); piece.workspaceBytes <= usual)
        return piece;
  return pieceOf(s, 1, 1, kind);
}

/// Whether one key head, or the largest of its blocks, keeps more than engines can count.
bool isTooLong(const Sizes &s, const AttentionForm &form, std::optional<int64_t> block) {
  const auto [queries, keys] =
      block ? blockSizes(s, form, static_cast<uint64_t>(*block)) : std::pair(s.queries, s.keys);
  return keepsScores(form) && scoreBytes(s, queries, keys) >= 2 * kMostScores;
}

/// Pieces that are not cut into blocks.
AttentionPieces piecesOf(const Sizes &s, const AttentionForm &form, uint64_t usual) {
  if (!form.isGradient && !form.drops)
    return pieceOf(s, s.batch, s.groups, {PieceKind::Forward, false});
  const PieceKind kind = !form.isGradient ? PieceKind::Forward
                         : form.isFast    ? PieceKind::Fast
                                          : PieceKind::Exact;
  return cut(s, {kind, form.drops}, usual);
}

/// Why engines do not take an attention of these sizes, if they do not.
std::optional<AttentionRefusal> sizeRefusal(const Sizes &s, const AttentionForm &form) {
  if (s.batch * s.queries * s.keys * s.heads == 0)
    return AttentionRefusal::Empty;
  if (s.size % kVector != 0 || s.size > kMaxHead)
    return AttentionRefusal::HeadSize;
  // The first queries see no key, by whose sum engines would divide: they stand before the first one.
  const uint64_t reach = form.isCausal ? 1
                         : form.window ? static_cast<uint64_t>(*form.window)
                                       : s.queries + 1;
  return s.queries >= s.keys + reach ? std::optional(AttentionRefusal::Blind) : std::nullopt;
}

/// Bytes of a usual block's scores.
constexpr uint64_t kUsualBlockScores = uint64_t(256) << 20;
/// Rows of blocks that are computed before larger ones are taken: their number grows with the square.
constexpr uint64_t kUsualBlockRows = 16;
/// Queries that are enough work, where a window is shorter: more would see each other's keys in vain.
constexpr uint64_t kFewRows = 1024;

uint64_t divideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/// A window that hides keys that there are.
std::optional<uint64_t> windowOf(const Sizes &s, const AttentionForm &form) {
  const uint64_t all = form.isCausal ? s.keys : std::max(s.queries, s.keys);
  return form.window && static_cast<uint64_t>(*form.window) < all
             ? std::optional(static_cast<uint64_t>(*form.window))
             : std::nullopt;
}

/// Keys that some block of `rows` queries may have.
uint64_t bandKeys(const Sizes &s, const AttentionForm &form, uint64_t rows) {
  const std::optional<uint64_t> window = windowOf(s, form);
  if (!window)
    return s.keys;
  const uint64_t reach = *window - 1, past = s.keys > s.queries ? s.keys - s.queries : 0;
  const uint64_t unseen = past > reach ? past - reach : 0;
  // Keys before the first that is seen, down to a multiple of the unit; unsigned numbers wrap by whole units.
  const uint64_t aligned = (s.keys - s.queries - reach) % kAttentionBlockUnit;
  return std::min<uint64_t>(s.keys, rows + (form.isCausal ? 1 : 2) * reach + unseen + aligned);
}

/// The largest power of two, at least a round, that is usual, or that is not yet `many` and can be.
template <typename BytesFn, typename ManyFn>
uint64_t grow(const BytesFn &bytes, const ManyFn &areMany) {
  uint64_t block = kBlockRound;
  while (bytes(2 * block) <= kUsualBlockScores || (areMany(block) && bytes(2 * block) <= kMostScores))
    block *= 2;
  return block;
}

} // namespace

bool isCutByQueries(const AttentionSizes &s, const AttentionForm &form) {
  return !form.isGradient || windowOf(s, form);
}

std::optional<int64_t> attentionBlockSize(const AttentionSizes &s, const AttentionForm &form) {
  if (s.groups == 0 || !keepsScores(form) || scoreBytes(s, s.queries, s.keys) <= kMostScores)
    return std::nullopt;
  uint64_t whole = std::max(s.queries, s.keys), block = 0;
  if (isCutByQueries(s, form)) {
    whole = s.queries;
    const uint64_t sharers = windowOf(s, form).value_or(whole), most = std::max(sharers, kFewRows);
    const auto bytes = [&](uint64_t rows) { return scoreBytes(s, rows, bandKeys(s, form, rows)); };
    block = grow([&](uint64_t rows) { return rows >= 2 * most ? UINT64_MAX : bytes(rows); },
                 [&](uint64_t rows) { return sharers > rows * kUsualBlockRows; });
  } else {
    block = grow([&](uint64_t rows) { return scoreBytes(s, rows, rows); },
                 [&](uint64_t rows) { return whole > rows * kUsualBlockRows; });
  }
  const uint64_t count = divideUp(whole, block);
  return static_cast<int64_t>(alignTo(divideUp(whole, count), kBlockRound));
}

std::vector<AttentionBlock> attentionBlocks(int64_t queries, int64_t keys, bool causal, int64_t block) {
  std::vector<AttentionBlock> blocks;
  const int64_t shift = keys - queries;
  for (int64_t q = 0; q < queries; q += block) {
    const int64_t rows = std::min(block, queries - q), open = causal ? q + shift : keys;
    const bool isFirst = q == 0, isLast = q + rows == queries;
    const auto add = [&](int64_t k, int64_t count, bool isCausal) {
      const bool hasBegun = isCausal ? false : !isFirst;
      blocks.push_back({q, rows, k, count, q + shift - k, isCausal, k == 0,
                        k + count == (causal ? open + rows : keys), hasBegun ? count : 0,
                        isLast ? count : 0});
    };
    for (int64_t k = 0; k < open; k += block)
      add(k, std::min(block, open - k), false);
    if (causal)
      add(open, rows, true);
  }
  return blocks;
}

std::vector<AttentionBlock> attentionBands(const AttentionSizes &s, const AttentionForm &form, int64_t rows) {
  const auto queries = static_cast<int64_t>(s.queries), keys = static_cast<int64_t>(s.keys);
  const int64_t shift = keys - queries,
                before = static_cast<int64_t>(windowOf(s, form).value_or(s.queries + s.keys)) - 1;
  const auto firstOf = [&](int64_t q) {
    const int64_t first = std::max<int64_t>(0, q + shift - before);
    return q == 0 ? 0 : first - first % kAttentionBlockUnit;
  };
  std::vector<AttentionBlock> blocks;
  int64_t summed = 0; // keys from the first of all on
  for (int64_t q = 0; q < queries; q += rows) {
    const int64_t count = std::min(rows, queries - q), first = firstOf(q), next = q + count,
                  end = std::min(keys, next + shift + (form.isCausal ? 0 : before)),
                  ended = next == queries ? end : std::min(end, firstOf(next));
    blocks.push_back({q, count, first, end - first, q + shift - first, form.isCausal, true, true,
                      summed - first, ended - first});
    summed = end;
  }
  return blocks;
}

std::optional<AttentionPieces> attentionPieces(const AttentionSizes &sizes, const AttentionForm &form,
                                               uint64_t usual) {
  if (sizeRefusal(sizes, form))
    return std::nullopt;
  const std::optional<int64_t> block = attentionBlockSize(sizes, form);
  if (isTooLong(sizes, form, block))
    return std::nullopt;
  if (block)
    return blocksOf(sizes, form, static_cast<uint64_t>(*block));
  return piecesOf(sizes, form, usual);
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

AttentionForm attentionForm(LibraryFn fn, std::span<const Buffer *const> operands,
                            const AttentionParams &params) {
  return {fn == LibraryFn::AttentionBackward,
          params.isCausal,
          params.isFast,
          params.window,
          params.dropout.has_value(),
          attentionExtras(fn, operands).slopes != nullptr};
}

std::optional<AttentionRefusal> attentionRefusal(LibraryFn fn, std::span<const Buffer *const> operands,
                                                 const AttentionParams &params) {
  using enum AttentionRefusal;
  const AttentionExtras extras = attentionExtras(fn, operands);
  const Sizes s = attentionSizes(operands);
  const AttentionForm form = attentionForm(fn, operands, params);
  const std::optional<int64_t> block = params.block;
  // Masks of all blocks start on 16 bytes, those behind the keys that every query sees too.
  const bool isShifted =
      block && !isCutByQueries(s, form) && params.isCausal && (s.keys - s.queries) % kMaskVector != 0;
  const std::pair<AttentionRefusal, bool> forms[] = {{SinglePrecision, !isNarrow(operands[0]->dtype)},
                                                     {Slopes, extras.slopes && s.queries != s.keys}};
  for (const auto &[refusal, holds] : forms)
    if (holds)
      return refusal;
  if (const std::optional<AttentionRefusal> refusal = sizeRefusal(s, form))
    return refusal;
  if (extras.mask && (!isAlignedMask(*extras.mask) || isShifted))
    return Mask;
  if (!areAligned(fn, operands))
    return Alignment;
  return isTooLong(s, form, block) ? std::optional(Length) : std::nullopt;
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
    return "so many scores of one key head";
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
  const AttentionForm form = attentionForm(fn, operands, params);
  if (params.block)
    return blocksOf(s, form, static_cast<uint64_t>(*params.block));
  return piecesOf(s, form, usual);
}

} // namespace ds::rt
