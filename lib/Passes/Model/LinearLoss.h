//===- LinearLoss.h - A loss whose logits are a product --------------------------===//
#ifndef DS_LIB_PASSES_MODEL_LINEARLOSS_H
#define DS_LIB_PASSES_MODEL_LINEARLOSS_H

#include "ds/Dialect/Ds.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::ds {

/// How ranks that share sequences have the rows of a loss: of each of `sequences`, which lie one after the
/// other, each of `ranks` has one part.
struct RowParts {
  int64_t sequences = 1, ranks = 1;
};

/// A cross-entropy of a product, and the ops between.
struct LinearLoss {
  CrossEntropyOp loss;
  MatmulOp product;
  SmallVector<Operation *> between; ///< from the loss up: conversions, and what picks and folds rows
  RowParts parts;
};

/// The product that makes the logits, if they can be made in parts: nothing else reads them on the way, and
/// ranks that share sequences have equal parts of the rows.
std::optional<LinearLoss> matchLinearLoss(CrossEntropyOp loss);

/// The logits of one loss.
struct LogitsShape {
  int64_t rows = 0, columns = 0; ///< tokens of a rank, vocabulary
  int64_t width = 0;             ///< of the rows that they are computed from
  int64_t elementBytes = 4;      ///< of a logit, in all types in which it is held
  int64_t sumBytes = 0; ///< that chunks need to add up the weight's gradient, beyond the gradient itself
};

/// What the choice of chunks rests on.
LogitsShape shapeOf(LinearLoss &match);

/// Fewer rows are never chosen: products become slower, and the weight's gradient is read and written more
/// often than its products take (docs/bench.md has the measurements).
inline constexpr int64_t kLeastLossRows = 512;
/// Less is never saved for the time that it costs.
inline constexpr int64_t kLeastSavedBytes = int64_t(16) << 20;

/// Rows of a chunk: Liger's rule (Hsu et al. 2024), by which a chunk's logits are about as large as the rows
/// of its whole micro-batch, but at least kLeastLossRows. `shape.rows` where chunks would save nothing to
/// speak of.
int64_t chooseLossRows(const LogitsShape &shape);

/// Rows of the chunks among which memory may choose, the most first: powers of two, at least kLeastLossRows,
/// that save something to speak of.
SmallVector<int64_t> offerLossRows(const LogitsShape &shape);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_LINEARLOSS_H
