//===- CudaBuilder.h - What the forms of CUDA kernels share --------------------===//
#ifndef DS_LIB_CODEGEN_CUDA_CUDABUILDER_H
#define DS_LIB_CODEGEN_CUDA_CUDABUILDER_H

#include "CudaEmitter.h"
#include "NodeEmitter.h"

namespace mlir::ds::codegen {

/// Where a thread is in its launch; all i64.
struct ThreadNumbers {
  Value threadIndex, blockIndex, blockCount;
};

/// State of one kernel that is being written.
/// Its fields are what each thread computes once and all forms of kernels read.
class CudaBuilder {
public:
  /// Requires that `scoped` is in the entry block.
  CudaBuilder(const LoopNest &nest, const CudaMapping &mapping, CudaThread &thread, ModuleOp module,
              ScopedBuilder &scoped, const CudaOperands &operands);

  const LoopNest &nest;
  const CudaMapping &mapping;
  CudaThread &thread;
  const CudaOperands &operands;
  ModuleOp module;
  ScopedBuilder &s;
  OpBuilder &b;
  NodeEmitter nodes;
  ThreadNumbers own;
  std::vector<std::unique_ptr<LoopNest>> pieces; ///< whose nodes have been written

  /// Gives `emitter` the addresses of the operands that the function is given.
  void setOperands(NodeEmitter &emitter);

  // Index arithmetic on i64. Divisions are of numbers below `bound`, in 32 bits where that allows it.
  Value add(Value x, Value y) { return b.create<arith::AddIOp>(s.loc, x, y); }
  Value mul(Value x, int64_t factor);
  Value quotient(Value x, int64_t divisor, int64_t bound) { return divide(x, divisor, bound, false); }
  Value remainder(Value x, int64_t divisor, int64_t bound) { return divide(x, divisor, bound, true); }
  Value isBelow(Value x, int64_t bound);
  Value isBelow(Value x, Value bound);
  Value both(Value x, Value y); ///< of conditions that may be null: true

  /// Sets the kept (or reduced) dimensions but the vector dimension from their row-major position.
  void setDims(Value position, bool reducedOnes);

  /// Values that all reductions of a level start from.
  SmallVector<Value> neutralTotals(ArrayRef<Node *> level);
  /// Combines the current position of `copy` with the totals, where `valid` (null: everywhere).
  void accumulate(ArrayRef<Node *> level, unsigned copy, Value valid, SmallVectorImpl<Value> &totals);

  /// Combines `values`, one per reduction of `level`, over the `threads` threads of a row; all get the
  /// result. Threads are neighbours in a warp if there are at most 32, else the block.
  SmallVector<Value> acrossThreads(ArrayRef<Node *> level, SmallVector<Value> values, int64_t threads);

private:
  Value divide(Value x, int64_t divisor, int64_t bound, bool remainder);
  Value shuffle(Value value, unsigned mask);
  Value acrossWarp(const Node *reduction, Value value, int64_t threads);

  unsigned exchanges = 0; ///< through shared memory so far: they alternate between two halves of it
};

/// Bytes of shared memory that acrossThreads needs for this kernel.
int64_t exchangeBytes(const LoopNest &nest);

/// Writes the outputs at `start` of the vector dimension as single elements, by the nodes of `singles`.
void storeSingles(CudaBuilder &c, NodeEmitter &singles, const LoopNest &piece, Value start);

void emitCudaItems(CudaBuilder &c, const Body &body, const Layout &layout);
void emitCudaRows(CudaBuilder &c);
void emitCudaColumns(CudaBuilder &c);
/// Adds up columns in parts, as `parts` says, and then the parts, as `sums` says.
void emitCudaParts(CudaBuilder &parts, CudaBuilder &sums);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDA_CUDABUILDER_H
