//===- KernelBuilder.h - What the forms of CPU kernels share -------------------===//
#ifndef DS_LIB_CODEGEN_KERNELBUILDER_H
#define DS_LIB_CODEGEN_KERNELBUILDER_H

#include "NodeEmitter.h"

namespace mlir::ds::codegen {

/// State of one kernel that is being written.
class KernelBuilder {
public:
  KernelBuilder(const LoopNest &nest, int64_t lanes, ModuleOp module, LLVM::LLVMFuncOp function,
                OpBuilder &builder)
      : nest(nest), units(divideWork(nest, lanes)), lanes(lanes),
        s(builder, function.getLoc(), function.addEntryBlock(builder)), b(builder),
        nodes(s, module, function.getArgument(0), lanes) {
    nodes.position.setNest(&nest);
  }

  const LoopNest &nest;
  const WorkUnits units;
  const int64_t lanes;
  ScopedBuilder s;
  OpBuilder &b;
  NodeEmitter nodes;

  /// Sets the kept (or reduced) dimensions but the vector dimension from their row-major position.
  void setDims(Value position, bool reducedOnes);

  /// Calls `write` for whole vectors of [from, to) and once more, masked, for what is left. The vector
  /// dimension is set to where the vector starts.
  void overRange(Value from, Value to, llvm::function_ref<void()> write);

  /// Values that all reductions of a level start from, `copies` of each.
  SmallVector<Value> neutralTotals(ArrayRef<Node *> level, int64_t copies);
  /// Adds the current position of every copy to the totals: entry (reduction k, copy c) is totals[k * copies
  /// + c]. In rows, lanes behind the end stay as they are; columns keep their lanes apart anyway.
  void accumulate(ArrayRef<Node *> level, int64_t copies, SmallVectorImpl<Value> &totals);
};

/// Writes the row that the kept dimensions stand at: reductions, then outputs.
void emitKernelRow(KernelBuilder &k);
/// Keeps values that several stages of a row need; to be called once, before the first row.
void chooseRowCaches(KernelBuilder &k);
/// Writes the block of columns with the number `chunk` in its row of columns.
void emitKernelColumns(KernelBuilder &k, Value chunk);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_KERNELBUILDER_H
