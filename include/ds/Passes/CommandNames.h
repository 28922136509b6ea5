//===- CommandNames.h - What commands and states are called ---------------------------===//
#ifndef DS_PASSES_COMMANDNAMES_H
#define DS_PASSES_COMMANDNAMES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What a command is called in reports and traces: "matmul", "attention_forward", or the main op of a kernel.
std::string nameOfCommand(Operation *command, SymbolTable &symbols);

/// What a reader knows `state` by: its own name; of a bucket's state its tensors and, unless they are
/// parameters, what of them it has, as in "h.0.attn.c_attn.weight and 11 more (exp_avg)".
std::string nameOfState(StateOp state, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_COMMANDNAMES_H
