//===- Sharding.h - Along which numbers an op can be cut -----------------------===//
//
// A dimension is a product of factors: the 2304 columns of a fused projection are 3 x 12 x 64, of which 12
// are heads. An op is cut along a factor, and each rank has an equal part of it. Where that is not the
// outermost factor of its dimension, the part is strided in the whole, and packed on the rank: of the 2304
// columns, two ranks have three times 384, and what they have is a plain tensor of 1152.
//
//   reshape  [2, 32, 2304] -> [2, 32, 3, 12, 64]
//     factor of size 12: operand dimension 2 behind 3 others, result dimension 3 behind none
//   matmul   [64, 768] x [768, 2304] -> [64, 2304]
//     M = 64 and N = 2304 are Parallel: ranks have parts of the result;
//     K = 768 is a Sum: each rank has an addend of all of it.
//
// A cut names the dimension and the product of the factors that are outside of the one which is cut. That is
// all that has to be known of it: sizes of factors are found where a reshape or a split asks for them.
//
// Where a split takes pieces of different sizes, each of them is cut by itself. What is cut so has a ratio:
// of 48 fused heads, 32 of which are queries and twice 8 keys and values, in the ratio 4 : 1 : 1.
//
//   split  [2, 32, 3072] -> [2, 32, 2048], [2, 32, 512], [2, 32, 512]
//     a factor: operand dimension 2 in the ratio 4 : 1 : 1, dimension 2 of each result
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_SHARDING_H
#define DS_DIALECT_SHARDING_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What of a dimension is cut, each into as many parts as there are ranks: `outer` equal blocks, or all of
/// each that are in the ratio `ratio` to each other, the smallest numbers that say so. Empty: one block.
struct Blocks {
  int64_t outer = 1;
  SmallVector<int64_t, 3> ratio = {};

  bool operator==(const Blocks &) const = default;
  /// Pieces of these sizes, one behind the other; there is at least one.
  static Blocks ofSizes(ArrayRef<int64_t> sizes);
  /// The number of equal pieces that each is a multiple of.
  int64_t count() const;
  /// Whether `ranks` can cut `size` entries so.
  bool divide(int64_t size, int64_t ranks) const;
  /// Sizes of the pieces of each of the `outer` equal blocks of `size` entries. Requires that they divide it.
  SmallVector<int64_t> sizes(int64_t size) const;
};

/// Where a value is cut: the blocks of its dimension `dim`.
struct Cut {
  int64_t dim = 0;
  Blocks blocks = {};
  bool operator==(const Cut &) const = default;
};

/// What cutting a factor makes of the results.
enum class FactorKind : uint8_t {
  Parallel, ///< ranks have parts of those that have the factor, and all of the others
  Sum,      ///< the op adds along it: ranks have addends of those that do not have it
  Max,      ///< the op takes the largest along it, and ranks do so among theirs
  Min       ///< or the least
};

/// How an operand or a result has a factor.
struct FactorDim {
  /// Of one that lacks the factor.
  enum class Lack : uint8_t {
    Whole,  ///< each rank reads all of it, and makes an addend of its gradient where it makes a part of
            ///< the result
    Once,   ///< it is added to what ranks make addends of: one rank alone reads it, others read zero
    Addend, ///< it is an addend as the result is
  };
  int64_t dim = -1;   ///< -1: it lacks the factor
  Blocks blocks = {}; ///< what of the dimension is the factor's: equal blocks where others are outside of it
  Lack lack = Lack::Whole;

  bool has() const { return dim >= 0; }
};

/// A number along which an op can be cut, and with it the dimensions that are made of it.
struct ShardingFactor {
  FactorKind kind = FactorKind::Parallel;
  int64_t size = 1;
  bool isOutermost = false;    ///< it is cut as one block alone: a rank has to have consecutive entries
  bool isEven = false;         ///< it is cut in equal blocks alone
  int64_t ranksMultipleOf = 1; ///< of which the number of ranks has to be a multiple
  SmallVector<FactorDim> operands, results;
};

/// All that an op answers.
struct ShardingRule {
  SmallVector<ShardingFactor> factors;
  /// The results are addends where all operands are.
  bool passesAddends = false;
};

/// Ranks that have parts of values: those that differ along these axes alone.
struct CutRanks {
  AxesAttr axes;
  int64_t count = 1;
};

/// Of a factor that is cut, what one rank does.
struct LocalPart {
  ShardingFactor factor;
  Blocks blocks = {}; ///< of the factor
  CutRanks ranks;
};

/// The cut of what has `place` of a factor whose `blocks` are cut. Requires that it has it.
Cut cutOf(const FactorDim &place, const Blocks &blocks);

/// Which blocks of `factor` are cut where an operand or result that has `place` of it is cut so among
/// `ranks`; nothing where that is not along the factor.
std::optional<Blocks> findBlocks(const ShardingFactor &factor, const FactorDim &place, const Cut &cut,
                                 int64_t ranks);

/// What a rank has of a value of `type`.
RankedTensorType localType(RankedTensorType type, const Cut &cut, int64_t ranks);

// Exchanges, built at the insertion point. Collectives are along dimension 0, so that what is cut elsewhere
// is brought there by a transposition. `type` is that of the whole value.

/// This rank's part of `whole`, which all have.
Value takePart(OpBuilder &builder, Location loc, Value whole, const Cut &cut, CutRanks ranks);
/// The whole of which each rank has `part`.
Value gatherParts(OpBuilder &builder, Location loc, Value part, RankedTensorType type, const Cut &cut,
                  CutRanks ranks);
/// What a rank has of a value that is cut `to`, where each has `part` of what is cut `from`.
Value exchangeParts(OpBuilder &builder, Location loc, Value part, RankedTensorType type, const Cut &from,
                    const Cut &to, CutRanks ranks);
/// This rank's part of the sum of what ranks have.
Value scatterSum(OpBuilder &builder, Location loc, Value addend, const Cut &cut, CutRanks ranks);
/// `value`, which all have, on the first rank, and zeros on the others: addends of it.
Value onFirstRank(OpBuilder &builder, Location loc, Value value, CutRanks ranks);
/// What each rank has, combined.
Value combineAll(OpBuilder &builder, Location loc, ReduceKind kind, Value value, CutRanks ranks);

/// Attaches ShardingOpInterface to the ops of the table.
void attachShardingRules(MLIRContext &context);

} // namespace mlir::ds

#include "ds/Dialect/DsShardingInterface.h.inc"

#endif // DS_DIALECT_SHARDING_H
