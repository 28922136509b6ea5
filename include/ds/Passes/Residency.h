//===- Residency.h - What a module says of what was kept and made again ------------===//
#ifndef DS_PASSES_RESIDENCY_H
#define DS_PASSES_RESIDENCY_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ds {

/// Module attribute, a dictionary, by ds-rematerialize-cheap: `again`, what is made again and could have been
/// kept, by kind of op {what, values, saved_bytes, more_seconds}; `largest`, of the largest values that have
/// a choice {what, layer, bytes, way} and of the next best way {next, next_more_seconds, next_more_bytes},
/// where there is one; where losses could be made in pieces `loss` {rows, pieces}, the rows that were chosen,
/// 0 where they are whole, and of all that they offer {rows, chunks, saved_bytes, more_seconds}, what those
/// save and cost beside whole losses, with all else as it was chosen; `host_values` and `host_bytes`, what of
/// forward is on the host between its uses; whether the choice `fits` what it was given; `expected_bytes` of
/// the device and `expected_seconds` of a step's busiest resource, estimates both, and `bound_seconds`, less
/// than which no choice of this kind takes.
inline constexpr llvm::StringLiteral kResidencyAttr = "ds.residency";

/// Module attribute, a unit: in how many pieces losses are made is open. ds-split-loss leaves them whole and
/// says at each in what pieces it could be made; ds-rematerialize-cheap chooses, and says in `loss` of
/// ds.residency what it would have. It splits nothing.
inline constexpr llvm::StringLiteral kOffersLossAttr = "ds.offers_loss";
/// Of a loss that is whole, an array: rows of the pieces in which it could be made. Of a module in phase
/// model, an integer: the rows that were chosen for all losses that offer them.
inline constexpr llvm::StringLiteral kLossRowsAttr = "ds.loss_rows";

/// Module attribute, an integer, by which ds-rematerialize-cheap holds as little as can be, whatever that
/// costs. It says of which groups calls are made again: each is of so many narrow values, 0: none is. -1: all
/// are tried, and the pass puts the one there with which least is held. It is the same for every batch.
inline constexpr llvm::StringLiteral kLeastHeldAttr = "ds.least_held";

} // namespace mlir::ds

#endif // DS_PASSES_RESIDENCY_H
