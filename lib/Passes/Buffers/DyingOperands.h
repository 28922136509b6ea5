//===- DyingOperands.h - Which operand a result may overwrite -----------------------------===//
//
// A result that is written where an operand was just read may take the operand's memory, if nothing reads
// that later. An update that reads a gradient, a moment that was moved here and a weight gives the new moment
// the old one's buffer (rank 0), though the gradient dies as well (rank 2): the moment goes back to where it
// came from.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_BUFFERS_DYINGOPERANDS_H
#define DS_LIB_PASSES_BUFFERS_DYINGOPERANDS_H

#include "BufferTable.h"

namespace mlir::ds {

class DyingOperands {
public:
  /// Of one region, which can have hundreds of operands and as many results.
  DyingOperands(FusedOp op, const BufferTable &table);

  /// The buffer of an operand that may hold `result`, or null.
  Value find(OpResult result) const;

private:
  FusedOp op;
  const BufferTable &table;
  DenseMap<Value, unsigned> sharers; ///< root buffer -> how many operands lie in it
};

/// The place of the state that `op` has the new value of, where it holds nothing any more: that of the
/// gradient so far, which was loaded for a product to add to. Null where there is none.
Value findVacated(StoreOp op, const BufferTable &table);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_BUFFERS_DYINGOPERANDS_H
