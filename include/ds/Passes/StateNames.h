//===- StateNames.h - What states are called ------------------------------------------===//
#ifndef DS_PASSES_STATENAMES_H
#define DS_PASSES_STATENAMES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What a reader knows `state` by: its own name; of a bucket's state its tensors and, unless they are
/// parameters, what of them it has, as in "h.0.attn.c_attn.weight and 11 more (exp_avg)".
std::string nameOfState(StateOp state, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_STATENAMES_H
