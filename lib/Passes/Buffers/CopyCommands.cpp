//===- CopyCommands.cpp - Commands on buffers, from one function to another --------===//
#include "CopyCommands.h"

#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

/// The argument of `to` that holds what `argument` of `from` does; added where there is none.
static Value findArgument(func::FuncOp from, BlockArgument argument, func::FuncOp to) {
  const unsigned number = argument.getArgNumber();
  for (unsigned index = 0; index < to.getNumArguments(); ++index)
    if (getStateOf(to, index) == getStateOf(from, number) &&
        getInputOf(to, index) == getInputOf(from, number))
      return to.getArgument(index);
  to.insertArgument(to.getNumArguments(), argument.getType(), from.getArgAttrDict(number), argument.getLoc());
  return to.getArguments().back();
}

void CommandCopier::translate(Value value) {
  if (mapping.contains(value))
    return;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    mapping.map(value, findArgument(from, argument, to));
    return;
  }
  for (Value operand : value.getDefiningOp()->getOperands())
    translate(operand);
  builder.clone(*value.getDefiningOp(), mapping);
}

Operation *CommandCopier::copy(Operation *command) {
  for (Value operand : command->getOperands())
    translate(operand);
  return builder.clone(*command, mapping);
}

Value mlir::ds::onOtherRoot(Value buffer, llvm::function_ref<Value(Value root)> onto, OpBuilder &builder) {
  auto view = buffer.getDefiningOp<ViewOp>();
  if (!view)
    return onto(buffer);
  IRMapping mapping;
  mapping.map(view.getSource(), onOtherRoot(view.getSource(), onto, builder));
  return builder.clone(*view, mapping)->getResult(0);
}
