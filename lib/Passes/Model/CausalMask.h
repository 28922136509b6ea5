//===- CausalMask.h - Recognises masks that hide the future and the distant ------===//
#ifndef DS_LIB_PASSES_MODEL_CAUSALMASK_H
#define DS_LIB_PASSES_MODEL_CAUSALMASK_H

#include "ds/Dialect/Ds.h"

#include <optional>

namespace mlir::ds {

/// What a truth value over [..., T, S] says about position t seeing position s.
enum class Visibility { Visible, Hidden };

/// Which keys a position sees, as `ds.attention` says it: t sees s <= t + (S - T) only where `isCausal`, and
/// |t + (S - T) - s| < `window` only where there is one.
struct SeenKeys {
  Visibility whenTrue;
  bool isCausal;
  std::optional<int64_t> window;
};

/// What `condition` is true, or false, for exactly; nothing when that is no such set of keys, or all of them,
/// or cannot be computed, or differs between leading indices.
std::optional<SeenKeys> matchSeenKeys(Value condition);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_CAUSALMASK_H
