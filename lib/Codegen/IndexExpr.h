//===- IndexExpr.h - Integer expressions over loop dimensions ------------------===//
//
// What a body element's index is, as a function of the loops around it: a sum of terms `coefficient * atom`,
// where an atom is a loop dimension or a division, remainder or clamp that bounds could not remove.
// AffineExpr knows no bounds, so a reshape and the reshape back would not cancel; these do, which is what
// keeps loads contiguous. Expressions are interned: equal ones have equal addresses.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_INDEXEXPR_H
#define DS_LIB_CODEGEN_INDEXEXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace mlir::ds::codegen {

struct IndexAtom;

/// One product of an expression.
struct IndexTerm {
  const IndexAtom *atom;
  int64_t coefficient;
};

/// Sum of terms, ordered by atom, plus a constant.
struct IndexSum {
  llvm::SmallVector<IndexTerm, 4> terms;
  int64_t constant = 0;
  uint32_t dims = 0; ///< bit d: the value depends on loop dimension d

  bool isConstant() const { return terms.empty(); }
};
using Index = const IndexSum *;

/// What a term multiplies. `dim` names the loop dimension of a Dim; `inner`, `a` and `b` are: inner / a
/// rounded down, inner mod a, and inner clamped to [a, b].
struct IndexAtom {
  enum class Kind : uint8_t { Dim, FloorDiv, Mod, Clamp } kind;
  unsigned id;
  unsigned dim;
  Index inner;
  int64_t a, b;
};

/// Inclusive bounds of a value.
struct IndexRange {
  int64_t low, high;
};

/// Makes and owns expressions over loop dimensions whose bounds it is told first.
class IndexContext {
public:
  /// Adds a loop dimension that runs over `range`; returns its number (< 32).
  unsigned addDim(IndexRange range);
  unsigned numDims() const { return dimRanges.size(); }
  IndexRange dimRange(unsigned dim) const { return dimRanges[dim]; }

  Index constant(int64_t value);
  Index dim(unsigned number);
  Index add(Index a, Index b, int64_t scale = 1); ///< a + scale * b
  Index scale(Index a, int64_t factor, int64_t offset = 0);
  Index floorDiv(Index a, int64_t divisor); ///< divisor > 0
  Index mod(Index a, int64_t divisor);      ///< divisor > 0; result in [0, divisor)
  Index clamp(Index a, int64_t low, int64_t high);

  /// Bounds of an expression; never too narrow.
  IndexRange range(Index a) const;

  /// Row-major position of `indices` in a tensor of `shape`.
  Index linearize(llvm::ArrayRef<Index> indices, llvm::ArrayRef<int64_t> shape);
  /// Indices of row-major position `position` in a tensor of `shape`.
  llvm::SmallVector<Index> delinearize(Index position, llvm::ArrayRef<int64_t> shape);

private:
  Index intern(IndexSum sum);
  const IndexAtom *atom(IndexAtom::Kind kind, unsigned dim, Index inner, int64_t a, int64_t b);
  Index ofAtom(const IndexAtom *atom);
  bool splitByFactor(Index a, int64_t factor, Index &quotient, Index &rest);

  using SumKey = std::pair<std::vector<std::pair<unsigned, int64_t>>, int64_t>;
  using AtomKey = std::tuple<IndexAtom::Kind, unsigned, Index, int64_t, int64_t>;
  llvm::SmallVector<IndexRange> dimRanges;
  std::map<SumKey, std::unique_ptr<IndexSum>> sums;
  std::map<AtomKey, std::unique_ptr<IndexAtom>> atoms;
};

/// Coefficient of loop dimension `dim` where it stands alone in `a`.
int64_t linearCoefficient(Index a, unsigned dim);

/// True when `dim` occurs in `a` at most as a linear term.
bool isLinearIn(Index a, unsigned dim);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_INDEXEXPR_H
