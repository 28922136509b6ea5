//===- CommandNames.h - What commands are called --------------------------------------===//
#ifndef DS_PASSES_COMMANDNAMES_H
#define DS_PASSES_COMMANDNAMES_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What a command is called in reports and traces: "matmul", "attention_forward", or the main op of a kernel.
std::string nameOfCommand(Operation *command, SymbolTable &symbols);

} // namespace mlir::ds

#endif // DS_PASSES_COMMANDNAMES_H
