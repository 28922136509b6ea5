//===- FunctionText.h - The lines of the imported function, and their names -----===//
//
// Numbers values, arguments of states and locations as they are first written, so that the same archive gives
// the same text.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_FUNCTIONTEXT_H
#define DS_LIB_IMPORT_TORCH_FUNCTIONTEXT_H

#include "States.h"
#include "Value.h"

#include <map>

namespace ds::ts {

/// Where an op comes from.
struct Location {
  std::string layer; ///< "transformer.h.3.attn"
  std::string file;  ///< empty when not known
  size_t line = 0, column = 0;
  std::string op = {}; ///< "aten::add", the operator that is being imported
};

class FunctionText {
public:
  /// Lines from here on come from `location`.
  void setLocation(const Location &location) { current = location; }
  const Location &location() const { return current; }

  /// Appends a line with `op`, which is all that stands after the equals sign. Returns its named result.
  TensorRef emit(const std::string &op, Shape shape, at::ScalarType type);
  std::vector<TensorRef> emitMany(const std::string &op,
                                  const std::vector<std::pair<Shape, at::ScalarType>> &types);
  /// The name of the argument that gives the function the state; a new one on first use.
  std::string argument(State &state);
  /// The next number of a dropout, by which it draws other numbers than the rest.
  int64_t nextDropout() { return numDropouts++; }
  /// The name of the forward's argument number `index`.
  static std::string inputName(size_t index) { return "%arg" + std::to_string(index); }

  /// A value that the forward gives a state.
  struct Update {
    State *state = nullptr;
    std::string value; ///< its name
  };
  /// The module: states, the function with `inputs` as arguments, which returns `result` under the name
  /// `value` and the values of updates, and the locations.
  std::string finish(States &states, const std::vector<std::pair<std::string, TensorRef>> &inputs,
                     const TensorRef &result, const std::string &value, const std::vector<Update> &updates);

private:
  std::string locationSuffix();

  std::string body;
  std::string locations;                     ///< the definitions of #loc0, #loc1, ...
  std::map<std::string, size_t> locationIds; ///< by spelling
  Location current;
  size_t nextValue = 0;
  int64_t numDropouts = 0;
  std::vector<State *> used; ///< in the order of their arguments
};

/// "tensor<4x8xf32>" of a tensor of the function.
inline std::string typeOf(const TensorRef &tensor) { return spell(tensor->shape, tensor->type); }

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_FUNCTIONTEXT_H
