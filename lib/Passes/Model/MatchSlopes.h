//===- MatchSlopes.h - Addends that grow with the distance ----------------------===//
#ifndef DS_LIB_PASSES_MODEL_MATCHSLOPES_H
#define DS_LIB_PASSES_MODEL_MATCHSLOPES_H

#include "ds/Dialect/Ds.h"

#include <optional>

namespace mlir::ds {

/// What is added to scores [B, H, T, S]: slopes[h] * factor * s, plus what is the same for a row, which a
/// softmax does not see.
struct HeadSlopes {
  Value slopes; ///< H elements
  double factor;
};

/// `addend` as slopes, where it is a product of what differs between heads alone and of what is computed from
/// counters and constants and grows by the same from key to key: in all of a row, or where `isCausal` in what
/// it sees, so that -|t - s| counts as well.
std::optional<HeadSlopes> matchSlopes(Value addend, bool isCausal);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MATCHSLOPES_H
