//===- LossPieces.h - What it would take to make a loss in pieces -----------------===//
//
// A loss that ds-split-loss left whole may say in what pieces it could be made (`piece_rows`). What each such
// way would hold and cost is foretold here from the whole one: of what has a row for each token and a column
// for each word, a piece has its share, and what is computed from it exists from the first piece on.
//
//   logits = matmul(x, w); loss; gradient over the logits; dx = matmul(gradient, w); dw = matmul(x, gradient)
//
// Whole, all rows of the logits are held from the first product to the last, and dx and dw from their own
// products on. In pieces, a piece's rows of the logits are held, and dx and dw, from the first product on; a
// weight's gradient of 16 bits is added up in f32 beside it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_LOSSPIECES_H
#define DS_LIB_PASSES_RESIDENT_LOSSPIECES_H

#include "SegmentMemory.h"
#include "ValueCosts.h"

namespace mlir::ds {

/// A loss of one segment that is whole and could be made in pieces.
struct LossPieces {
  CrossEntropyOp loss;
  int64_t allRows = 0;
  SmallVector<int64_t> offered;     ///< rows of a piece
  SmallVector<uint32_t> ofPiece;    ///< memories of which a piece has its share
  SmallVector<uint32_t> ofAll;      ///< memories that pieces fill one after the other, or add to
  int64_t sumBytes = 0;             ///< that sums in f32 take beside those
  SmallVector<Operation *> calls;   ///< that each piece makes on its rows
  SmallVector<Operation *> rowSums; ///< those of them that add up over rows
  int64_t kernels = 0;              ///< that each piece starts beside its calls
  uint32_t begin = 0, end = 0;      ///< moments from the first of its calls to the last

  /// Bytes of `bytes` that a piece of `rows` has.
  int64_t shareOf(int64_t bytes, int64_t rows) const;
  /// What pieces of `rows` cost beside the whole; not negative.
  double moreSeconds(int64_t rows, const ValueCosts &costs) const;
};

/// Those of `func`. Left out are losses of which backward waits for the loss itself: no piece of one would be
/// consumed before all were made.
std::vector<LossPieces> findLossPieces(func::FuncOp func, const SegmentMemory &memory);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_LOSSPIECES_H
