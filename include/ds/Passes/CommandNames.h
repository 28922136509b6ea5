//===- CommandNames.h - What commands and their places in the model are called ------===//
#ifndef DS_PASSES_COMMANDNAMES_H
#define DS_PASSES_COMMANDNAMES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// Where the model made an op: its layer ("h.3.attn"), or empty.
std::string layerOf(Location loc);

/// What a command is called in reports and traces: "matmul", "attention_forward", or the main op of a kernel.
std::string nameOfCommand(Operation *command, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_COMMANDNAMES_H
