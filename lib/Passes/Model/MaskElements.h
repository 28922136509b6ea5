//===- MaskElements.h - Elements of what masks are computed from -----------------===//
//
// Masks are made of counters and constants in many ways. Whatever the way, their elements can be computed
// here, a row at a time: of 8192 positions squared the ops are looked at 8192 times and not 67 million times.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_MODEL_MASKELEMENTS_H
#define DS_LIB_PASSES_MODEL_MASKELEMENTS_H

#include "ds/Dialect/Ds.h"

#include <optional>
#include <vector>

namespace mlir::ds {

/// Elements of a tensor in a row: `first`, and those `step`, 2 * `step`, ... further along `dim`.
struct ElementLine {
  SmallVector<int64_t, 4> first;
  std::optional<int64_t> dim; ///< none: `first` alone, as often as is asked
  int64_t step = 1;
};

/// Evaluates elements of tensors that are made of counters and constants. All numbers that occur in masks are
/// exact in double precision.
class MaskElements {
public:
  /// One element for each of `count` of the line, or a single one where they are all the same; nothing where
  /// they depend on anything else, or on more ops than are worth it.
  std::optional<std::vector<double>> at(Value value, const ElementLine &line, int64_t count);

private:
  using Elements = std::optional<std::vector<double>>;
  Elements evaluate(Value value, const ElementLine &line);
  Elements evaluateMove(Operation *op, const ElementLine &line);
  Elements atConstant(ConstantOp op, const ElementLine &line);
  Elements atIota(IotaOp op, const ElementLine &line);
  Elements atReshape(ReshapeOp op, const ElementLine &line);
  Elements atElementwise(Operation *op, const ElementLine &line);

  DenseMap<Operation *, std::vector<double>> constants; ///< unpacked elements of the constants seen so far
  int64_t count = 0;                                    ///< of the line that is asked for
  int64_t opsLeft = 0;                                  ///< for that line
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_MODEL_MASKELEMENTS_H
