//===- ScopedBuilder.h - Nested loops with a place to hoist to -----------------===//
//
// Loops are built from the outside in, one basic block at a time, and whatever an inner loop needs that does
// not change in it is written before it. Inputs and outputs may be the same memory, so LLVM could not hoist
// loads by itself. Scope 0 is the function; each loop or block adds one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_SCOPEDBUILDER_H
#define DS_LIB_CODEGEN_SCOPEDBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::ds::codegen {

class ScopedBuilder {
public:
  /// Starts writing at the end of `entry`, which is scope 0.
  ScopedBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block *entry);

  mlir::OpBuilder &b;
  mlir::Location loc;

  /// Number of the innermost scope.
  unsigned depth() const { return scopes.size() - 1; }

  /// Opens `for (iv = from; iv < to; iv += step)` with values carried from iteration to iteration.
  struct Loop {
    mlir::Block *header, *exit;
    mlir::Value iv, step;
    llvm::SmallVector<mlir::Value> carried;
  };
  Loop beginLoop(mlir::Value from, mlir::Value to, mlir::Value step, mlir::ValueRange initial = {});
  Loop beginLoop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange initial = {}) {
    // The step is a constant of the block before the loop, so that the header holds the test alone.
    return beginLoop(from, to, constant(step), initial);
  }
  /// Closes the innermost loop; returns the carried values after it.
  llvm::SmallVector<mlir::Value> endLoop(const Loop &loop, mlir::ValueRange next = {});

  /// Opens and closes a scope that is no loop.
  void beginBlock();
  void endBlock();

  /// Opens a scope that is entered where `condition` holds; returns the block behind it.
  mlir::Block *beginIf(mlir::Value condition);
  void endIf(mlir::Block *exit);

  /// What was written for `key` in an open scope, or null.
  mlir::Value lookup(const void *key, unsigned variant) const;
  void remember(unsigned scope, const void *key, unsigned variant, mlir::Value value);

  /// Runs `write` so that what it writes stands at the end of `scope`, before the scope inside it.
  template <class Write>
  auto at(unsigned scope, Write write) {
    if (scope >= depth())
      return write();
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(scopes[scope].end);
    return write();
  }

  mlir::Value constant(int64_t value) {
    return b.create<mlir::arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
  }

private:
  struct Scope {
    mlir::Operation *end = nullptr; ///< the branch into the scope inside
    llvm::DenseMap<std::pair<const void *, unsigned>, mlir::Value> memo;
  };
  llvm::SmallVector<Scope> scopes;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_SCOPEDBUILDER_H
