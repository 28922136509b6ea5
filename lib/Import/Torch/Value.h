//===- Value.h - What a TorchScript value is while it is imported ---------------===//
//
// The interpreter runs a module's methods on abstract values: integers, strings and tensors that are known
// are kept as LibTorch has them, tensors that depend on an argument or a parameter are names of the function
// that is being written, with a static shape and type. Lists, tuples and dictionaries hold both kinds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_VALUE_H
#define DS_LIB_IMPORT_TORCH_VALUE_H

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ds::ts {

using Shape = std::vector<int64_t>;

struct State;
struct Tensor;
struct Sequence;
struct Dictionary;
using TensorRef = std::shared_ptr<Tensor>;
using SequenceRef = std::shared_ptr<Sequence>;
using DictionaryRef = std::shared_ptr<Dictionary>;

/// The result of an operator that could not be imported: what depends on it is skipped, so that one run finds
/// every unsupported operator.
struct Unknown {
  const char *what = nullptr; ///< what it is, where that is told only when something reads it
};

using Value = std::variant<Unknown, c10::IValue, TensorRef, SequenceRef, DictionaryRef>;

/// Tensors that share memory: the tensor that owns it and its views.
struct Storage {
  std::vector<std::weak_ptr<Tensor>> members;
};

/// A tensor: a known one, or a name of the function being written. A write in place changes this object, so
/// that every alias sees it.
struct Tensor {
  Shape shape;
  at::ScalarType type = at::ScalarType::Undefined;
  std::string name;                 ///< "%12"; empty while the tensor is known
  at::Tensor known;                 ///< defined while the tensor is known
  std::shared_ptr<Storage> storage; ///< shared with its views
  State *state = nullptr;           ///< the parameter that this is
  bool isStale = false;             ///< was overwritten through an alias
  TensorRef transposed;             ///< this with its last two dimensions swapped, where that has a name
  TensorRef logSoftmaxOf;           ///< the logits of which this is the log-softmax along `logSoftmaxDim`
  int64_t logSoftmaxDim = 0;

  bool isKnown() const { return known.defined(); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t numel() const;
};

struct Sequence {
  bool isTuple = false;
  std::vector<Value> items;
};

struct Dictionary {
  std::vector<std::pair<Value, Value>> items;
};

/// A tensor whose elements are known.
TensorRef makeKnown(at::Tensor tensor);
/// A tensor named `name`, with memory of its own.
TensorRef makeNamed(std::string name, Shape shape, at::ScalarType type);
/// A number of the program that a trace has as a tensor: PyTorch's promotion then goes by the other operand,
/// which is forgotten in the file. A constant of rank 0 and of the type of Python's float or int is one; what
/// torch.tensor made of a number is a copy of it (asTensor).
c10::IValue asNumber(const c10::IValue &constant);
/// The same elements as a tensor that counts in promotion.
c10::IValue asTensor(const c10::IValue &value);
/// A value that LibTorch computed; containers are taken apart.
Value fromIValue(const c10::IValue &value);
/// True when the value and all that it contains is known.
bool isKnown(const Value &value);
/// True when the value or something that it contains could not be imported.
bool isUnknown(const Value &value);
/// The first thing in the value that could not be imported and that nobody was told of; null where there is
/// none.
const char *findUntold(const Value &value);
/// The value as LibTorch has it, typed as `type` asks; requires isKnown(value).
c10::IValue toIValue(const Value &value, const c10::TypePtr &type);

inline Value makeList(std::vector<Value> items) {
  return std::make_shared<Sequence>(Sequence{false, std::move(items)});
}
inline Value makeTuple(std::vector<Value> items) {
  return std::make_shared<Sequence>(Sequence{true, std::move(items)});
}
inline Value none() { return c10::IValue(); }
inline bool isNone(const Value &value) {
  auto *known = std::get_if<c10::IValue>(&value);
  return known && known->isNone();
}

/// "tensor<4x8xf32>", as MLIR spells it.
std::string spell(const Shape &shape, at::ScalarType type);
/// "f32"; throws Unsupported for a type that the dialect has not.
std::string spell(at::ScalarType type);
/// The type that MLIR spells so; Undefined when there is none.
at::ScalarType parseElementType(const std::string &spelling);
/// "[4, 8]", for messages and for attributes.
std::string spellList(const Shape &shape);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_VALUE_H
