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
#include "Gaps.h"

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <unordered_map>

namespace ds::ts {

/// A method for each kind of node that leads to others; Evaluation.cpp has the operators.
class Interpreter {
public:
  Interpreter(Builder &b, States &states) : b(b), states(states) {}

  /// Runs the module's method; `arguments` are those after self, in order.
  Value run(const torch::jit::Module &module, const std::string &method, std::vector<Value> arguments);
  /// Throws one failure that lists what is not supported; does nothing where all is.
  void refuseUnsupported() const { gaps.refuse(); }

private:
  using Scope = std::unordered_map<const torch::jit::Value *, Value>;

  std::vector<Value> runGraph(torch::jit::Graph &graph, std::vector<Value> arguments);
  /// Runs the nodes and returns the values that the block returns.
  std::vector<Value> runBlock(torch::jit::Block &block, Scope &scope);
  void runNode(torch::jit::Node &node, Scope &scope);
  /// The results of a node that is not one of control flow, modules or constants.
  std::vector<Value> call(torch::jit::Node &node, const Scope &scope);
  /// True when the node was one of control flow, modules or constants.
  bool runStructure(torch::jit::Node &node, Scope &scope);
  void runIf(torch::jit::Node &node, Scope &scope);
  void runLoop(torch::jit::Node &node, Scope &scope);
  Value readAttribute(torch::jit::Node &node, const Value &object);
  std::vector<Value> callMethod(torch::jit::Node &node, std::vector<Value> arguments);
  std::vector<Value> callFunction(torch::jit::Node &node, std::vector<Value> arguments);
  std::vector<Value> runOperator(torch::jit::Node &node, std::vector<Value> &arguments);
  /// The number or truth value, where it is known.
  std::optional<int64_t> knownInteger(const Value &value);
  /// What the value of a condition or a trip count is for the list of what is not supported, where that is
  /// not a consequence of something in the list.
  void noteUndecided(torch::jit::Node &node, const Value &value, const std::string &what);

  Builder &b;
  States &states;
  CallPath path;
  Gaps gaps{path};
  int64_t numNodes = 0;
};

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_INTERPRETER_H
