//===- Builder.h - Writes ops on elements and shapes as MLIR text -----------------===//
//
// One method per op of the dialect. A method computes the result's shape and type, appends one line, and
// returns the named tensor; it trusts its caller where the dialect's verifier would complain. Known tensors
// become ops when a method first reads them (Constants.cpp says which).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_BUILDER_H
#define DS_LIB_IMPORT_TORCH_BUILDER_H

#include "FunctionText.h"
#include "Literals.h"

#include <map>
#include <optional>

namespace ds::ts {

/// Ops on elements and on shapes. Those of layers are functions over it (NetworkOps.h).
class Builder {
public:
  Builder(States &states, FunctionText &text) : states(states), text(text) {}

  /// The name of the tensor's value; writes the op that makes it where the tensor is known.
  std::string use(const TensorRef &tensor);

  // Ops, in the order of the dialect's files.
  TensorRef unary(const char *op, const TensorRef &x);
  TensorRef binary(const char *op, const TensorRef &a, const TensorRef &b);
  TensorRef compare(const char *predicate, const TensorRef &a, const TensorRef &b);
  TensorRef select(const TensorRef &condition, const TensorRef &onTrue, const TensorRef &onFalse);
  TensorRef convert(const TensorRef &x, at::ScalarType type);

  TensorRef splat(const c10::Scalar &value, const Shape &shape, at::ScalarType type);
  TensorRef iota(int64_t dim, int64_t start, int64_t step, const Shape &shape, at::ScalarType type);
  TensorRef broadcast(const TensorRef &x, const Shape &dims, const Shape &shape);
  TensorRef reshape(const TensorRef &x, const Shape &shape);
  TensorRef transpose(const TensorRef &x, const Shape &perm);
  TensorRef slice(const TensorRef &x, const Shape &offsets, const Shape &sizes, const Shape &strides);
  TensorRef pad(const TensorRef &x, const Shape &offsets, const Shape &shape);
  TensorRef concat(const std::vector<TensorRef> &parts, int64_t dim);
  std::vector<TensorRef> split(const TensorRef &x, int64_t dim, const Shape &sizes);
  TensorRef reduce(const char *kind, const TensorRef &x, const Shape &dims);

  States &states;
  FunctionText &text;

private:
  /// Writes the op that gives a known tensor (Constants.cpp).
  TensorRef materialize(const at::Tensor &tensor);
  TensorRef materializePattern(const at::Tensor &tensor);

  std::map<const void *, std::pair<at::Tensor, std::pair<uint32_t, TensorRef>>>
      written; ///< by tensor: version, op
};

/// `x` repeated to `shape` as PyTorch's rules say; a known splat is written in that shape at once.
TensorRef broadcastTo(Builder &b, const TensorRef &x, const Shape &shape);
/// Gives `target`, which others may hold, the elements of `value`, which has its shape; other tensors that
/// share its memory are stale from then on.
void overwrite(Builder &b, const TensorRef &target, const TensorRef &value);
/// The one value of a known tensor whose elements are all equal.
std::optional<c10::Scalar> splatValue(const TensorRef &x);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_BUILDER_H
