//===- CopyCommands.h - Commands on buffers, from one function to another ----------===//
#ifndef DS_LIB_PASSES_BUFFERS_COPYCOMMANDS_H
#define DS_LIB_PASSES_BUFFERS_COPYCOMMANDS_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::ds {

/// Copies commands of one function behind each other into another of the same module.
class CommandCopier {
public:
  /// Copies go to where `builder` is.
  CommandCopier(func::FuncOp from, func::FuncOp to, OpBuilder &builder)
      : from(from), to(to), builder(builder) {}

  /// Copies `command`, with the allocations and views that it is the first to name. States and inputs become
  /// arguments of the other function where they are none yet.
  Operation *copy(Operation *command);

private:
  void translate(Value value);

  func::FuncOp from, to;
  OpBuilder &builder;
  IRMapping mapping;
};

/// `buffer` as it is of another root: the views that lead to it are made once more, where `builder` is, on
/// what `onto` has for its root.
Value onOtherRoot(Value buffer, llvm::function_ref<Value(Value root)> onto, OpBuilder &builder);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_COPYCOMMANDS_H
