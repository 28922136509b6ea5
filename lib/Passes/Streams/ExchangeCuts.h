//===- ExchangeCuts.h - What of products and exchanges can be cut along rows --------===//
//
// Ranks that share layers exchange what products make and read (docs/tensors.md). Here it is found which
// commands those are, and each is built again for some of the rows. Nothing is decided.
//
// What each rank keeps of a sum, and what it gives to a gather, is its part of each sample's rows. With two
// ranks and two samples a, b of rows a0 a1 b0 b1:
//
//   product      a0 a1 b0 b1
//   copy         a0 b0 a1 b1      the ranks' parts one after the other, as the collective reads them
//   rank 0 keeps a0 b0            (the sums)
//
// By samples no copy is needed: the sum of a0 a1 leaves a0 on rank 0, that of b0 b1 leaves b0 behind it.
//
// One sample is cut in what ranks keep of it: with rows a0 to a7 and two ranks, of which the first keeps a0
// to a3, the sum of a0 a1 a4 a5 leaves a0 a1 on rank 0. Products make these rows one after the other, for
// nothing but the sum reads them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_EXCHANGECUTS_H
#define DS_LIB_PASSES_STREAMS_EXCHANGECUTS_H

#include "ds/Passes/BufferAccess.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::ds {

/// A sum over ranks of what a product makes.
struct SummedProduct {
  CommunicateOp exchange;
  CallOp product;
  CallOp copy = {};    ///< that brings ranks to the front, between the two; where there is one
  int64_t samples = 0; ///< by which it is cut; 0: by any rows
  int64_t ranks = 0;   ///< of one sample: those of whose rows each piece has some; 0: it has rows in a row
};

/// Rows that ranks gather by samples, each from its copies.
struct GatheredRows {
  CommunicateOp exchange;
  SmallVector<CallOp> copies;  ///< that bring samples to the front; all that read what is gathered
  Operation *reader = nullptr; ///< the first command that reads a copy
  CallOp product = {};         ///< that reads all rows, and can stand before `reader`
  int64_t samples = 0;
};

/// What `exchange` sums up, where that is a product that can be cut.
std::optional<SummedProduct> findSummedProduct(CommunicateOp exchange);
/// What `exchange` gathers, where that are rows of several samples, for a product among others.
std::optional<GatheredRows> findGatheredRows(CommunicateOp exchange);

/// Whether each row of the result is made of one row of the left factor, and of nothing else that has rows:
/// no sums of columns, and no form that was measured for all rows.
bool isByRows(CallOp call);
/// Rows of the result of `product`.
int64_t rowsOf(CallOp product);
/// Has `product` made `rows` rows after `rows` rows (ProductForm.h), with the bits of as many products.
void makeInParts(CallOp product, int64_t rows);
/// The commands that name `alloc` or a view of it.
llvm::SetVector<Operation *> usersOf(AllocOp alloc);
/// The nearest command behind `op` that has to do with `accesses`; null where none does.
Operation *findBehind(Operation *op, ArrayRef<BufferAccess> accesses);

/// `product` for `rows` rows from row `first` on.
CallOp cutProduct(OpBuilder &builder, CallOp product, int64_t first, int64_t rows);
/// What makes the rows of piece `piece` of `pieces` of a sum of one sample: one product of a batch for each
/// rank, or as many products.
SmallVector<CallOp> cutProductByRanks(OpBuilder &builder, const SummedProduct &sum, int64_t piece,
                                      int64_t pieces, bool isBatched);
/// The exchange of part `part` of `parts` of the rows; of `samples` parts, where there are samples.
CommunicateOp cutExchange(OpBuilder &builder, const SummedProduct &sum, int64_t part, int64_t parts);
/// The gather of one sample.
CommunicateOp cutExchange(OpBuilder &builder, const GatheredRows &rows, int64_t sample);

/// Lets all that reads a copy of the gathered rows read them where they lie by sample, and erases the copies.
void readInPlace(GatheredRows &rows);

/// Erases `op`, and views that nothing else reads, and their allocation.
void eraseCommand(Operation *op);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_EXCHANGECUTS_H
