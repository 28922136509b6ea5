//===- Operators.h - The table of importable operators --------------------------===//
//
// An operator is one entry: its schema's name and the function that writes its ops. The interpreter has
// already evaluated what is known, so an entry sees at least one tensor that depends on an argument or a
// parameter, and its arguments by the schema's names. An operator that writes in place (`add_`) needs no
// entry of its own.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_OPERATORS_H
#define DS_LIB_IMPORT_TORCH_OPERATORS_H

#include "Builder.h"
#include "Failure.h"
#include "Value.h"

#include <ATen/core/function_schema.h>

#include <optional>
#include <string_view>

namespace torch::jit {
struct Node;
}

namespace ds::ts {

/// One use of an operator.
class Call {
public:
  Call(Builder &b, const c10::FunctionSchema &schema, std::vector<Value> &arguments)
      : b(b), schema(schema), arguments(arguments) {}

  /// The argument of that name; None where the schema has none.
  const Value &value(std::string_view name) const;
  /// True when the argument is there and is not None.
  bool has(std::string_view name) const { return !isNone(value(name)); }
  TensorRef tensor(std::string_view name) const;
  /// The tensor, or null where it is None.
  TensorRef optionalTensor(std::string_view name) const { return has(name) ? tensor(name) : nullptr; }
  std::vector<TensorRef> tensors(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  int64_t integerOr(std::string_view name, int64_t other) const { return has(name) ? integer(name) : other; }
  double number(std::string_view name) const;
  double numberOr(std::string_view name, double other) const { return has(name) ? number(name) : other; }
  bool flag(std::string_view name) const { return has(name) && integer(name) != 0; }
  Shape integers(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// The argument as an element type, or `other` where it is None.
  at::ScalarType type(std::string_view name, at::ScalarType other) const;
  /// A dimension of a tensor of that rank, counted from the front.
  int64_t dim(std::string_view name, int64_t rank) const;
  /// Dimensions, ascending; all of them where the argument is None or empty.
  Shape dims(std::string_view name, int64_t rank) const;
  /// True when the argument is a number and not a tensor.
  bool isNumber(std::string_view name) const { return std::holds_alternative<c10::IValue>(value(name)); }
  /// The number of an int, float, bool or a known one-element tensor.
  c10::Scalar scalar(std::string_view name) const;

  Builder &b;
  const c10::FunctionSchema &schema;
  std::vector<Value> &arguments;    ///< in the schema's order
  torch::jit::Node *node = nullptr; ///< for operators whose meaning is in their node (lists, tuples)
};

using Handler = Value (*)(Call &);

struct Operator {
  const char *name;
  Handler handler;
};

/// The operators of one theme: each is defined in the file of that name.
struct OperatorList {
  const Operator *begin = nullptr;
  size_t count = 0;
};
OperatorList arithmeticOperators();
OperatorList activationOperators();
OperatorList containerOperators();
OperatorList convolutionOperators();
OperatorList factoryOperators();
OperatorList joiningOperators();
OperatorList layoutOperators();
OperatorList indexingOperators();
OperatorList linearOperators();
OperatorList lossOperators();
OperatorList networkOperators();
OperatorList normOperators();
OperatorList poolingOperators();
OperatorList resizingOperators();
OperatorList scanOperators();
OperatorList reductionOperators();

/// The handler of "aten::add"; null where there is none.
Handler findOperator(const std::string &name);
/// The same for operators on lists and dictionaries, which the interpreter never leaves to LibTorch.
Handler findContainerOperator(const std::string &name);
/// All names of both tables, sorted.
std::vector<std::string> operatorNames();
/// True when the operator reads only the shape and type of that argument: it may be evaluated although the
/// argument's elements are not known.
bool readsShapeOnly(const std::string &name, size_t argument);
/// The first PyTorch release that has the operator, where it is newer than the one linked here; null
/// otherwise.
const char *introducedIn(const std::string &name);

// Helpers that several themes share.

/// The number of the operator's dimensions, which its name has ("max_pool2d").
size_t dimsOf(const Call &call);
/// One number for all dimensions, or one for each.
Shape perDim(Call &call, const char *name, size_t numDims);
/// `self` in the type that `dtype` asks for; sums and products of integers are 64 bits wide.
TensorRef summand(Call &call);

/// A known number as a tensor of rank 0 that does not widen types.
TensorRef makeScalar(const c10::Scalar &value);
/// The type that PyTorch computes in when it combines these.
at::ScalarType promote(const std::vector<TensorRef> &tensors);
/// The shape that PyTorch's broadcasting gives.
Shape broadcastShapes(const std::vector<TensorRef> &tensors);
/// Makes the tensors equal in shape and, where `type` is given, in type.
void unify(Builder &b, std::vector<TensorRef> &tensors, at::ScalarType type);
/// `x` op `y` with PyTorch's promotion and broadcasting.
TensorRef combine(Builder &b, const char *op, TensorRef x, TensorRef y);
/// `x` op number, in x's type.
TensorRef combine(Builder &b, const char *op, const TensorRef &x, double y);
/// Sums (or another kind) over dims; keeps them as size 1 when `keep`.
TensorRef reduceDims(Builder &b, const char *kind, const TensorRef &x, const Shape &dims, bool keep);
/// The mean over dims.
TensorRef meanDims(Builder &b, const TensorRef &x, const Shape &dims, bool keep);
/// x, converted to a float type where it is not one.
TensorRef asFloat(Builder &b, const TensorRef &x);
/// Marks `result` as a view of `source`: a write to one makes the other stale.
TensorRef asView(const TensorRef &source, TensorRef result);
/// Inserts a dimension of size 1.
TensorRef unsqueeze(Builder &b, const TensorRef &x, int64_t dim);
/// The window [start, start + size) of one dimension.
TensorRef narrow(Builder &b, const TensorRef &x, int64_t dim, int64_t start, int64_t size, int64_t step = 1);
/// The rows of `x` along `dim` at known positions: one window where they are evenly spaced, else joined
/// pieces.
TensorRef takeKnown(Builder &b, const TensorRef &x, int64_t dim, const Shape &positions);
/// x with the order of `dim` reversed.
TensorRef flipDim(Builder &b, const TensorRef &x, int64_t dim);
/// The operator that pads with values of the tensor itself, by the name of its mode.
Value padByMode(Call &call, const std::string &mode);
/// The position along `dim`, which stays with size 1, of the first element that is the "max" or "min", or is
/// no number; of type i32.
TensorRef firstPosition(Builder &b, const char *kind, const TensorRef &x, int64_t dim);
/// The matrix product as torch.matmul gives it.
TensorRef multiplyMatrices(Builder &b, TensorRef x, TensorRef y);
/// x[..., index[...]] along the last dimension, for indices of one column: [..., 1].
TensorRef pickLast(Builder &b, const TensorRef &x, const TensorRef &index);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_OPERATORS_H
