//===- MatchSlopes.h - Addends that grow with the distance ----------------------===//
#ifndef DS_LIB_PASSES_MODEL_MATCHSLOPES_H
#define DS_LIB_PASSES_MODEL_MATCHSLOPES_H

#include "ds/Dialect/Ds.h"

#include <optional>

namespace mlir::ds {

/// What is added to scores [B, H, T, S]: slopes[h] * factor * s, plus what is the same for a row, which a
/// softmax does not see.
struct HeadSlopes {
  Value slopes; ///< one for each head
  double factor;
};

/// Of each dimension of a value, which of the scores' it is; negative for those that are none of them.
using ScoreDims = SmallVector<int64_t, 4>;

/// One of the values whose sum is added to scores, in the shape that it has before it is repeated.
struct Addend {
  Value value;
  ScoreDims dims;
};

/// Takes the sum `mask` apart, which is of scores [B, H, T, S] or [B * H, T, S]; nothing for other ranks.
void splitAddends(Value mask, SmallVectorImpl<Addend> &addends);

/// `addend` of scores [..., queries, keys] as slopes, where it is a product of what differs between heads
/// alone and of what is computed from counters and constants and grows by the same from key to key: in all of
/// a row, or where `isCausal` in what it sees, so that -|t - s| counts as well. Where batch and heads are one
/// dimension there may be a slope for each of both: the caller has to compare their number with the heads'.
std::optional<HeadSlopes> matchSlopes(Addend addend, int64_t queries, int64_t keys, bool isCausal);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MATCHSLOPES_H
