//===- CudaThread.h - What one thread of a CUDA kernel can ask of its block ----===//
//
// The mapping of a kernel onto blocks, warps and threads is written against these few primitives, so that the
// same code can be lowered to PTX, where they are instructions, and to the CPU, where a test calls a kernel
// once per thread and makes the threads of a block wait for one another.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_CUDA_CUDATHREAD_H
#define DS_LIB_CODEGEN_CUDA_CUDATHREAD_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::ds::codegen {

/// What a kernel's function is given.
struct CudaSignature {
  unsigned operands = 0;  ///< addresses
  unsigned params = 0;    ///< i64 each
  int64_t tableWords = 0; ///< of 8 bytes, passed by value; 0: no table
  unsigned blockThreads = 1;
};

class CudaThread {
public:
  virtual ~CudaThread() = default;

  /// Adds the kernel's function, without a body, to the end of `module`.
  virtual LLVM::LLVMFuncOp makeFunction(ModuleOp module, StringRef symbol,
                                        const CudaSignature &signature) = 0;
  /// Address of an operand; the value of a param, an i64. Asked for in the entry block.
  virtual Value operand(OpBuilder &b, Location loc, unsigned number) = 0;
  virtual Value param(OpBuilder &b, Location loc, unsigned number) = 0;
  /// Word `index` of the table, an i64 or a pointer to global memory.
  virtual Value tableWord(OpBuilder &b, Location loc, Value index, Type type) = 0;

  /// Numbers of the thread in its block and of the block in the grid, and the number of blocks: i64.
  virtual Value threadIndex(OpBuilder &b, Location loc) = 0;
  virtual Value blockIndex(OpBuilder &b, Location loc) = 0;
  virtual Value blockCount(OpBuilder &b, Location loc) = 0;
  /// The thread's number as it is found out here: nothing that is made of it can be computed earlier, where
  /// it would take registers of what comes before.
  virtual Value threadIndexAnew(OpBuilder &b, Location loc) = 0;

  /// The i32 `word` of the thread of the warp whose number differs in the bits of `mask`. All threads of the
  /// warp must come here.
  virtual Value shuffle(OpBuilder &b, Location loc, Value word, unsigned mask) = 0;
  /// Waits for all threads of the block (of the warp), and makes what they wrote visible to them.
  virtual void blockBarrier(OpBuilder &b, Location loc) = 0;
  virtual void warpBarrier(OpBuilder &b, Location loc) = 0;
  /// Memory of the block: `bytes`, the same at every call in one kernel, at a multiple of 16.
  virtual Value sharedMemory(OpBuilder &b, Location loc, int64_t bytes) = 0;

  /// Adds 1 to counter `number` of the `counters` that the kernel's launches have in turn, or makes it 0
  /// where it has reached `last`; returns what it was, an i32. All are 0 before the first launch, and are
  /// again after each that counts each of them last + 1 times. Who is given x sees what those that were given
  /// less saw before they counted.
  virtual Value countUp(OpBuilder &b, Location loc, Value number, int64_t counters, int64_t last) = 0;

  /// Whether LLVM's truncation to bf16 is an instruction.
  virtual bool hasNativeBf16() const = 0;
};

/// The primitives as NVVM has them.
class NvvmThread : public CudaThread {
public:
  LLVM::LLVMFuncOp makeFunction(ModuleOp module, StringRef symbol, const CudaSignature &signature) override;
  Value operand(OpBuilder &b, Location loc, unsigned number) override;
  Value param(OpBuilder &b, Location loc, unsigned number) override;
  Value tableWord(OpBuilder &b, Location loc, Value index, Type type) override;
  Value threadIndex(OpBuilder &b, Location loc) override;
  Value blockIndex(OpBuilder &b, Location loc) override;
  Value blockCount(OpBuilder &b, Location loc) override;
  Value threadIndexAnew(OpBuilder &b, Location loc) override;
  Value shuffle(OpBuilder &b, Location loc, Value word, unsigned mask) override;
  void blockBarrier(OpBuilder &b, Location loc) override;
  void warpBarrier(OpBuilder &b, Location loc) override;
  Value sharedMemory(OpBuilder &b, Location loc, int64_t bytes) override;
  Value countUp(OpBuilder &b, Location loc, Value number, int64_t counters, int64_t last) override;
  bool hasNativeBf16() const override { return true; }

private:
  LLVM::LLVMFuncOp function;
  unsigned numOperands = 0;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_CUDA_CUDATHREAD_H
