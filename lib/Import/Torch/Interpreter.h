//===- Interpreter.h - Runs a module's methods on abstract values ---------------===//
//
// Loops and branches run as Python would run them, for what they depend on is known: sizes, flags, lists of
// modules. So nothing is unrolled or inlined beforehand, and each op knows the module that it belongs to.
// What LibTorch can compute because all of it is known, LibTorch computes; the rest becomes ops.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_INTERPRETER_H
#define DS_LIB_IMPORT_TORCH_INTERPRETER_H

#include "Builder.h"

#include <torch/csrc/jit/ir/ir.h>

#include <map>

namespace ds::ts {

class Interpreter {
public:
  Interpreter(Builder &b, States &states) : b(b), states(states) {}

  /// Runs the module's method; `arguments` are those after self, in order.
  Value run(const torch::jit::Module &module, const std::string &method, std::vector<Value> arguments);
  /// Throws one failure that lists what is not supported; does nothing where all is.
  void refuseUnsupported() const;

private:
  using Scope = std::unordered_map<const torch::jit::Value *, Value>;

  std::vector<Value> runGraph(torch::jit::Graph &graph, std::vector<Value> arguments);
  /// Runs the nodes and returns the values that the block returns.
  std::vector<Value> runBlock(torch::jit::Block &block, Scope &scope);
  void runNode(torch::jit::Node &node, Scope &scope);
  /// True when the node was one of control flow, modules or constants.
  bool runStructure(torch::jit::Node &node, Scope &scope);
  void runIf(torch::jit::Node &node, Scope &scope);
  void runLoop(torch::jit::Node &node, Scope &scope);
  Value readAttribute(torch::jit::Node &node, const Value &object);
  std::vector<Value> callMethod(torch::jit::Node &node, std::vector<Value> arguments);
  std::vector<Value> callFunction(torch::jit::Node &node, std::vector<Value> arguments);
  std::vector<Value> runOperator(torch::jit::Node &node, std::vector<Value> &arguments);
  std::vector<Value> evaluate(torch::jit::Node &node, const std::vector<Value> &arguments);
  bool canEvaluate(torch::jit::Node &node, const std::vector<Value> &arguments) const;
  Value runHandler(torch::jit::Node &node, const std::string &name, std::vector<Value> &arguments);
  void writeInPlace(const TensorRef &target, const Value &result, const std::string &name);
  /// Requires a truth value or number that is known.
  std::optional<int64_t> knownInteger(const Value &value) const;
  void noteUnsupported(torch::jit::Node &node, const std::string &what);
  Location locate(torch::jit::Node &node) const;

  /// One kind of thing that is not supported.
  struct Gap {
    int64_t count = 0;
    std::vector<std::string> places; ///< the first few
  };

  Builder &b;
  States &states;
  std::map<std::string, Gap> gaps;
  std::vector<torch::jit::Node *> callers; ///< the calls that lead to the current node
  std::vector<std::string> layers;         ///< the module path of each active method
  int64_t numNodes = 0;
};

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_INTERPRETER_H
