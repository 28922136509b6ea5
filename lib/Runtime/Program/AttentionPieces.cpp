//===- AttentionPieces.cpp - Attention by cuDNN, in pieces that fit a workspace --===//
#include "ds/Runtime/Program/AttentionPieces.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <algorithm>

namespace ds::rt {
namespace {

/// Bytes of a piece of one key head. Its scores are then 2^30 at most, which 32 bits can count.
constexpr uint64_t kMost = uint64_t(2) << 30;
constexpr uint64_t kFixed = 512;   ///< bytes of counters and descriptors that engines ask for besides
constexpr int64_t kVector = 8;     ///< 16-bit elements in 16 bytes, which the engines load at once
constexpr int64_t kMaskVector = 4; ///< f32 elements in 16 bytes
constexpr uint64_t kMaxHead = 256; ///< of any engine

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

/// Bytes that the gradient of `heads` query heads over `batch` samples needs besides the row sums: scores in
/// 16 bits in whole tiles, and the gradients of keys and values for each query head where several share one.
uint64_t gradientBytes(const Sizes &s, uint64_t batch, uint64_t heads) {
  const uint64_t keys = alignTo(s.keys, 128), scores = 2 * batch * heads * alignTo(s.queries, 64) * keys;
  const uint64_t shared = s.heads > s.groups ? 4 * batch * heads * keys * s.size : 0;
  return scores + shared + kFixed;
}

AttentionPieces pieceOf(const Sizes &s, uint64_t batch, uint64_t groups, bool gradient) {
  const uint64_t heads = groups * (s.heads / s.groups);
  const uint64_t sums = gradient ? alignTo(4 * batch * heads * s.queries, kAttentionAlignment) : 0;
  const uint64_t engine = gradient ? gradientBytes(s, batch, heads) : kFixed;
  return {static_cast<int64_t>(batch), static_cast<int64_t>(groups), sums,
          alignTo(sums + engine, kAttentionAlignment)};
}

/// The largest piece within `usual` bytes: whole samples if one fits, else key heads of one sample. Pieces
/// are alike, so that one engine runs them all.
std::optional<AttentionPieces> cut(const Sizes &s, uint64_t usual) {
  for (uint64_t batch = s.batch; batch > 0; --batch)
    if (s.batch % batch == 0)
      if (AttentionPieces piece = pieceOf(s, batch, s.groups, true); piece.workspaceBytes <= usual)
        return piece;
  for (uint64_t groups = s.groups; groups > 1; --groups)
    if (s.groups % groups == 0)
      if (AttentionPieces piece = pieceOf(s, 1, groups, true); piece.workspaceBytes <= usual)
        return piece;
  const AttentionPieces least = pieceOf(s, 1, 1, true);
  return least.workspaceBytes <= kMost ? std::optional(least) : std::nullopt;
}

/// Whether engines take an attention of these sizes.
bool isTaken(const Sizes &s, bool causal) {
  const bool empty = s.batch * s.queries * s.keys * s.heads == 0;
  const bool blind =
      causal && s.queries > s.keys; // the first queries see no key: engines divide by their sum
  return !empty && !blind && s.size % kVector == 0 && s.size <= kMaxHead;
}

} // namespace

std::optional<AttentionPieces> gradientPieces(const AttentionSizes &sizes, bool causal, uint64_t usual) {
  return isTaken(sizes, causal) ? cut(sizes, usual) : std::nullopt;
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
  return gradient ? cut(s, usual) : pieceOf(s, s.batch, s.groups, false);
}

} // namespace ds::rt
