//===- MatchAttention.h - Spelled-out attention ---------------------------------===//
//
// softmax(q k^T * scale + mask) v is written in many spellings. The match starts at the last product and
// walks up: dropout, softmax, then scalings, masks and reshapes in any order, a cap, then the first product.
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

/// Keys that masks hide, as ds.attention says it.
struct HiddenKeys {
  bool causal = false;
  std::optional<int64_t> window;

  /// Hides the future as well if `future`, and what lies outside of `near`.
  void add(bool future, std::optional<int64_t> near);
};

/// What a sum that is added to scores says but for a mask.
struct MaskParts {
  HiddenKeys hidden;
  std::optional<HeadSlopes> slopes;
};

/// Finds which keys conditions show; layers share theirs.
class KeysFinder {
public:
  /// As matchSeenKeys() says.
  const std::optional<SeenKeys> &find(Value condition);

private:
  DenseMap<Value, std::optional<SeenKeys>> seen;
};

/// Takes `mask` apart that is added to scores which are multiplied by `scale` afterwards: each of its addends
/// hides the future or the distant, or is slopes, of which there is one; nothing where an addend is neither.
/// `isCausal`: other masks hide the future.
std::optional<MaskParts> matchMask(KeysFinder &finder, Value mask, double scale, bool isCausal);

/// What was found between the two products.
struct AttentionMatch {
  MatmulOp scores, result;
  double scale = 1;
  HiddenKeys hidden;
  std::optional<double> cap; ///< of the scores: above it come no masks
  std::optional<AdditiveMask> mask;
  std::optional<HeadSlopes> slopes;    ///< with all that scales them
  std::optional<AdditiveMask> spelled; ///< what the slopes are, as a mask
  DropoutOp dropout;                   ///< of the probabilities; null: none
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
  KeysFinder finder;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MATCHATTENTION_H
