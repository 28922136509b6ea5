//===- Interpreter.cpp - Control flow, modules and calls ------------------------===//

#include "Interpreter.h"
#include "../Guard/PlainWords.h"
#include "Operators.h"

#include <ATen/core/function.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <new>

namespace ds::ts {

namespace jit = torch::jit;
namespace prim = c10::prim;

/// A model that runs more nodes than this never ends, or is not one model.
static constexpr int64_t maxNodes = 1'000'000;
/// Methods call one another this deep at most.
static constexpr size_t maxCalls = 400;

namespace {
/// Puts an entry at the end of a list for a lifetime.
template <class T>
class Entered {
public:
  Entered(std::vector<T> &list, T entry) : list(list) { list.push_back(std::move(entry)); }
  ~Entered() { list.pop_back(); }
  Entered(const Entered &) = delete;

private:
  std::vector<T> &list;
};
} // namespace

Value Interpreter::run(const jit::Module &module, const std::string &method, std::vector<Value> arguments) {
  arguments.insert(arguments.begin(), c10::IValue(module._ivalue()));
  Entered<std::string> layer(path.layers, "");
  try {
    auto results =
        runGraph(*jit::toGraphFunction(module.get_method(method).function()).graph(), std::move(arguments));
    return results.front();
  } catch (const Exhausted &) {
    gaps.refuse();
    throw;
  }
}

std::vector<Value> Interpreter::runGraph(jit::Graph &graph, std::vector<Value> arguments) {
  if (path.callers.size() > maxCalls)
    throw Exhausted("the model's methods call one another more than " + std::to_string(maxCalls) + " deep");
  Scope scope;
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    scope[graph.inputs()[i]] = std::move(arguments.at(i));
  return runBlock(*graph.block(), scope);
}

std::vector<Value> Interpreter::runBlock(jit::Block &block, Scope &scope) {
  for (jit::Node *node : block.nodes())
    runNode(*node, scope);
  std::vector<Value> results;
  for (jit::Value *output : block.outputs())
    results.push_back(scope.at(output));
  return results;
}

/// What LibTorch says of `node`, without its stack.
static Failure explainLibTorch(jit::Node &node, const std::exception &error) {
  return Failure({ExitCode::Invalid,
                  std::string("LibTorch cannot evaluate ") + node.kind().toQualString() + ": " +
                      plainWords(error.what()),
                  "check the shapes given by --input"});
}

void Interpreter::runNode(jit::Node &node, Scope &scope) {
  if (++numNodes > maxNodes)
    throw Exhausted("the model's forward runs more than " + std::to_string(maxNodes) + " operators",
                    "loops of the forward must end");
  std::vector<Value> results;
  try {
    if (runStructure(node, scope))
      return;
    results = call(node, scope);
  } catch (const UnsupportedWrite &gap) {
    gaps.note(node, gap.what(), GapKind::Write);
  } catch (const Unsupported &gap) {
    gaps.note(node, gap.what());
  } catch (const Exhausted &) {
    throw;
  } catch (const Failure &failure) {
    gaps.endUnlessConsequence(node, failure);
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    if (tellsOfMemory(error.what())) // told with the limit that was met
      throw;
    gaps.endUnlessConsequence(node, explainLibTorch(node, error));
  }
  results.resize(node.outputs().size(), Unknown());
  for (size_t i = 0; i < results.size(); ++i)
    scope[node.outputs()[i]] = std::move(results[i]);
}

std::vector<Value> Interpreter::call(jit::Node &node, const Scope &scope) {
  std::vector<Value> arguments;
  for (jit::Value *input : node.inputs())
    arguments.push_back(scope.at(input));
  Location location = path.locate(node);
  location.op = node.kind().toQualString();
  b.text.setLocation(location);
  if (node.kind() == prim::CallMethod)
    return callMethod(node, std::move(arguments));
  if (node.kind() == prim::CallFunction)
    return callFunction(node, std::move(arguments));
  return runOperator(node, arguments);
}

/// The value of a constant. Tensors that a forward would write are small: each run has its own.
static Value readConstant(jit::Node &node) {
  constexpr int64_t maxCopied = 4096; // elements
  c10::IValue value = *jit::toIValue(node.output());
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() <= maxCopied &&
      value.toTensor().dim() > 0)
    value = value.toTensor().clone();
  return fromIValue(asNumber(value));
}

bool Interpreter::runStructure(jit::Node &node, Scope &scope) {
  auto kind = node.kind();
  if (kind == prim::Constant) {
    if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
      scope[node.output()] = Unknown(); // Its call reads the type.
    else
      scope[node.output()] = readConstant(node);
    return true;
  }
  if (kind == prim::If)
    return runIf(node, scope), true;
  if (kind == prim::Loop)
    return runLoop(node, scope), true;
  if (kind == prim::GetAttr) {
    scope[node.output()] = readAttribute(node, scope.at(node.input()));
    return true;
  }
  return false;
}

std::optional<int64_t> Interpreter::knownInteger(const Value &value) {
  if (auto *known = std::get_if<c10::IValue>(&value))
    if (known->isScalar())
      return known->toScalar().to<int64_t>();
  if (auto *tensor = std::get_if<TensorRef>(&value))
    if ((*tensor)->isKnown() && (*tensor)->numel() == 1) {
      states.noteRead((*tensor)->known);
      return (*tensor)->known.item().to<int64_t>();
    }
  return std::nullopt;
}

void Interpreter::noteUndecided(jit::Node &node, const Value &value, const std::string &what) {
  if (const char *untold = findUntold(value))
    gaps.note(node, what + ", by " + untold);
  else if (!isUnknown(value) || gaps.empty())
    gaps.note(node, what + " that depends on the model's inputs");
}

void Interpreter::runIf(jit::Node &node, Scope &scope) {
  const Value condition = scope.at(node.input());
  auto known = knownInteger(condition);
  if (!known) {
    noteUndecided(node, condition, "a branch");
    for (jit::Block *block : node.blocks()) // For what else is not supported in there.
      runBlock(*block, scope);
    for (jit::Value *output : node.outputs())
      scope[output] = Unknown();
    return;
  }
  auto results = runBlock(*node.blocks()[*known != 0 ? 0 : 1], scope);
  for (size_t i = 0; i < results.size(); ++i)
    scope[node.outputs()[i]] = std::move(results[i]);
}

void Interpreter::runLoop(jit::Node &node, Scope &scope) {
  const Value tripValue = scope.at(node.inputs()[0]);
  Value conditionValue = scope.at(node.inputs()[1]);
  auto trips = knownInteger(tripValue), condition = knownInteger(conditionValue);
  std::vector<Value> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i)
    carried.push_back(scope.at(node.inputs()[i]));
  jit::Block &body = *node.blocks()[0];
  auto turn = [&](Value index) {
    scope[body.inputs()[0]] = std::move(index);
    for (size_t i = 0; i < carried.size(); ++i)
      scope[body.inputs()[i + 1]] = std::move(carried[i]);
    carried = runBlock(body, scope);
    conditionValue = carried.front();
    carried.erase(carried.begin());
  };
  int64_t trip = 0;
  while (trips && condition && trip < *trips && *condition != 0) {
    if (++numNodes > maxNodes)
      throw Exhausted("a loop of the model's forward does not end");
    turn(c10::IValue(trip++));
    condition = knownInteger(conditionValue);
  }
  if (!trips || !condition) {
    noteUndecided(node, trips ? conditionValue : tripValue, "a loop");
    if (trip == 0)
      turn(Unknown()); // For what else is not supported in there.
    carried.assign(node.outputs().size(), Unknown());
  }
  for (size_t i = 0; i < carried.size(); ++i)
    scope[node.outputs()[i]] = std::move(carried[i]);
}

Value Interpreter::readAttribute(jit::Node &node, const Value &object) {
  auto *known = std::get_if<c10::IValue>(&object);
  if (!known || !known->isObject())
    return Unknown();
  const std::string &name = node.s(c10::attr::name);
  c10::IValue value = known->toObjectRef().getAttr(name);
  if (value.isTensor() && value.toTensor().defined())
    if (State *state = states.findParameter(value.toTensor())) {
      auto result = makeNamed("", value.toTensor().sizes().vec(), value.toTensor().scalar_type());
      result->state = state;
      return result;
    }
  if (value.isTensor() && value.toTensor().defined())
    if (TensorRef buffer = states.updatedBuffer(value.toTensor()))
      return buffer;
  if (const State *parameter = states.findAliased(value))
    throw Unsupported("a read of the attribute '" + name + "', which shares the memory of the parameter '" +
                      parameter->name + "' and is not that parameter");
  return fromIValue(value);
}

std::vector<Value> Interpreter::callMethod(jit::Node &node, std::vector<Value> arguments) {
  if (isUnknown(arguments.front()))
    return {};
  auto *self = std::get_if<c10::IValue>(&arguments.front());
  if (!self || !self->isObject())
    throw Unsupported("a method call on an object that is not a module");
  const auto &object = self->toObjectRef();
  auto &method = object.type()->getMethod(node.s(c10::attr::name));
  const std::string &own = states.pathOf(object);
  Entered<std::string> layer(path.layers, own.empty() ? path.layers.back() : own);
  Entered<jit::Node *> caller(path.callers, &node);
  return runGraph(*jit::toGraphFunction(method).graph(), std::move(arguments));
}

std::vector<Value> Interpreter::callFunction(jit::Node &node, std::vector<Value> arguments) {
  auto type = node.input(0)->type()->expect<c10::FunctionType>();
  arguments.erase(arguments.begin());
  Entered<jit::Node *> caller(path.callers, &node);
  return runGraph(*jit::toGraphFunction(*type->function()).graph(), std::move(arguments));
}

} // namespace ds::ts
