//===- MatchAttention.h - Spelled-out attention ---------------------------------===//
//
// softmax(q k^T * scale + mask) v is written in many spellings. The match starts at the last product and
// walks up: softmax, then scalings, masks and reshapes in any order, a cap, then the first product.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_MODEL_MATCHATTENTION_H
#define DS_LIB_PASSES_MODEL_MATCHATTENTION_H

#include "CausalMask.h"
#include "MatchSlopes.h"
#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// A mask that is added to the scores.
struct AdditiveMask {
  Value value;   ///< of the scores' shape where it is added
  double factor; ///< what the scores are multiplied by afterwards
};

/// What was found between the two products.
struct AttentionMatch {
  MatmulOp scores, result;
  double scale = 1;
  bool causal = false;
  std::optional<int64_t> window;
  std::optional<double> cap; ///< of the scores: above it come no masks
  std::optional<AdditiveMask> mask;
  std::optional<HeadSlopes> slopes;    ///< with all that scales them
  std::optional<AdditiveMask> spelled; ///< what the slopes are, as a mask
};

/// A factor that `value` carries: x * c, c * x or x / c with a constant c. Returns x and multiplies `scale`.
Value stripScale(Value value, double &scale);

/// The input of a reshape that keeps the last two dimensions; null otherwise.
Value stripLeadingReshape(Value value);

/// Walks from the last product to the first, in one function.
class AttentionMatcher {
public:
  AttentionMatcher(func::FuncOp func, SymbolTable &symbols) : func(func), symbols(symbols) {}

  /// What `result` is the last product of, if it is attention.
  std::optional<AttentionMatch> match(MatmulOp result);

private:
  Value stepUp(Value value, AttentionMatch &match);
  Value stepThroughSelect(SelectOp op, AttentionMatch &match);
  Value stepThroughAdd(AddOp op, AttentionMatch &match);
  bool addMask(Value condition, Visibility whenTrue, AttentionMatch &match);

  func::FuncOp func;
  SymbolTable &symbols;
  DenseMap<Value, std::optional<SeenKeys>> seen; ///< layers share their mask
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MATCHATTENTION_H
