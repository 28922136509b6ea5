//===- Builder.h - Writes the ops of the imported function as MLIR text ---------===//
//
// One method per op of the dialect. A method computes the result's shape and type, appends one line, and
// returns the named tensor; it trusts its caller where the dialect's verifier would complain. Known tensors
// become ops when a method first reads them (Constants.cpp says which).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_BUILDER_H
#define DS_LIB_IMPORT_TORCH_BUILDER_H

#include "States.h"
#include "Value.h"

#include <map>
#include <optional>

namespace ds::ts {

/// Where an op comes from.
struct Location {
  std::string layer; ///< "transformer.h.3.attn"
  std::string file;  ///< empty when not known
  size_t line = 0, column = 0;
  std::string op = {}; ///< "aten::add", the operator that is being imported
};

/// Size: a method for each op that operators are made of, as many as the dialect has, of a few lines
/// each.
class Builder {
public:
  explicit Builder(States &states) : states(states) {}

  /// Ops from here on come from `location`.
  void setLocation(const Location &location);
  const Location &location() const { return current; }

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

  struct MatmulOptions {
    TensorRef bias, accumulator;
    bool transposeLhs = false, transposeRhs = false;
  };
  TensorRef matmul(const TensorRef &a, const TensorRef &b, const MatmulOptions &options);
  TensorRef softmax(const TensorRef &x, int64_t dim, bool log);
  TensorRef layerNorm(const TensorRef &x, const TensorRef &weight, const TensorRef &bias, int64_t numDims,
                      double epsilon);
  TensorRef rmsNorm(const TensorRef &x, const TensorRef &weight, int64_t numDims, double epsilon);
  TensorRef attention(const TensorRef &query, const TensorRef &key, const TensorRef &value,
                      const TensorRef &mask, bool causal, double scale);
  struct ConvWindows {
    Shape stride, padding, dilation;
    int64_t groups = 1;
  };
  TensorRef conv(const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                 const ConvWindows &windows, const Shape &shape);
  /// Looking up the row `padding` gives it no gradient.
  TensorRef embedding(const TensorRef &table, const TensorRef &ids,
                      std::optional<int64_t> padding = std::nullopt);
  /// The sum of the losses of the rows that count, over `denominator`, or their mean where that is null.
  TensorRef crossEntropy(const TensorRef &logits, const TensorRef &targets, int64_t ignoreIndex,
                         const TensorRef &denominator);
  TensorRef dropout(const TensorRef &x, double probability);

  // What several operators need.
  /// `x` repeated to `shape` as PyTorch's rules say; a known splat is written in that shape at once.
  TensorRef broadcastTo(const TensorRef &x, const Shape &shape);
  /// `x` with its last two dimensions swapped.
  TensorRef swapLast(const TensorRef &x);
  /// The one value of a known tensor whose elements are all equal.
  static std::optional<c10::Scalar> splatValue(const TensorRef &x);

  /// The module: states, the function with `inputs` as arguments, and the locations.
  std::string finish(const std::vector<std::pair<std::string, TensorRef>> &inputs, const TensorRef &result);
  /// The name of the forward's argument number `index`.
  static std::string inputName(size_t index) { return "%arg" + std::to_string(index); }

  States &states;

private:
  /// Fails for float64, in which the runtime's libraries compute nothing.
  void refuseDouble(const TensorRef &x) const;
  TensorRef emit(const std::string &op, Shape shape, at::ScalarType type);
  std::vector<TensorRef> emitMany(const std::string &op,
                                  const std::vector<std::pair<Shape, at::ScalarType>> &types);
  std::string typeOf(const TensorRef &tensor) const { return spell(tensor->shape, tensor->type); }
  std::string locationSuffix();
  std::string useState(State &state);
  /// Writes the op that gives a known tensor (Constants.cpp).
  TensorRef materialize(const at::Tensor &tensor);
  TensorRef materializePattern(const at::Tensor &tensor);

  std::string body;
  std::string locations;                     ///< the definitions of #loc0, #loc1, ...
  std::map<std::string, size_t> locationIds; ///< by spelling
  std::map<const void *, std::pair<at::Tensor, std::pair<uint32_t, TensorRef>>>
      written; ///< by tensor: version, op
  Location current;
  size_t nextValue = 0, nextArgument = 0;
  int64_t nextDropout = 0;
  std::vector<State *> used; ///< in the order of their arguments
};

/// "0.125", "0x7FC00000": as a dense attribute of that type spells a number.
std::string spellNumber(const c10::Scalar &value, at::ScalarType type);
/// A double as an F64Attr spells it.
std::string spellDouble(double value);
/// Escapes what MLIR strings and JSON do not allow.
std::string quote(const std::string &text);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_BUILDER_H
