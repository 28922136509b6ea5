//===- StateNames.h - What states are called ------------------------------------------===//
#ifndef DS_PASSES_STATENAMES_H
#define DS_PASSES_STATENAMES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// What the entry for logits reads and writes: `i64 [M]`, the position of each sample that is asked for, as
/// sample * length + position; and `f32 [M, V]`.
inline constexpr StringLiteral kLogitsRowsState = "logits_rows", kLogitsState = "logits_of_rows";

/// Whether `func` is that entry: an evaluation that reads positions.
bool isLogitsEntry(func::FuncOp func);

/// What a reader knows `state` by: its own name; of a bucket's state its tensors and, unless they are
/// parameters, what of them it has, as in "h.0.attn.c_attn.weight and 11 more (exp_avg)".
std::string nameOfState(StateOp state, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_STATENAMES_H
