//===- CausalMask.h - Recognises masks that hide the future ---------------------===//
#ifndef DS_LIB_PASSES_MODEL_CAUSALMASK_H
#define DS_LIB_PASSES_MODEL_CAUSALMASK_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What a truth value over [..., T, S] says about position t seeing position s.
enum class Visibility { Visible, Hidden };

/// `Visible` when `condition` is true exactly where s <= t + (S - T), `Hidden` when exactly elsewhere, and
/// nothing when it is neither, or cannot be computed, or differs between leading indices.
std::optional<Visibility> matchCausal(Value condition);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_CAUSALMASK_H
