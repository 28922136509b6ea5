//===- Residency.h - What a module says of what was kept and made again ------------===//
#ifndef DS_PASSES_RESIDENCY_H
#define DS_PASSES_RESIDENCY_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ds {

/// Module attribute, a dictionary, by ds-rematerialize-cheap: `again`, what is made again and could have been
/// kept, by kind of op {what, values, saved_bytes, more_seconds}; `largest`, of the largest values that have
/// a choice {what, layer, bytes, way} and of the next best way {next, next_more_seconds, next_more_bytes},
/// where there is one; `host_values` and `host_bytes`, what of forward is on the host between its uses;
/// whether the choice `fits` what it was given; `expected_bytes` of the device and `expected_seconds` of a
/// step's busiest resource, estimates both, and `bound_seconds`, less than which no choice of this kind
/// takes.
inline constexpr llvm::StringLiteral kResidencyAttr = "ds.residency";

} // namespace mlir::ds

#endif // DS_PASSES_RESIDENCY_H
