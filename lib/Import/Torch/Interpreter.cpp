//===- Interpreter.cpp - Control flow, modules and calls ------------------------===//

#include "Interpreter.h"
#include "Failure.h"
#include "Operators.h"

#include <ATen/core/function.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

namespace ds::ts {

namespace jit = torch::jit;
namespace prim = c10::prim;

/// A model that runs more nodes than this never ends, or is not one model.
static constexpr int64_t maxNodes = 1'000'000;
/// Methods call one another this deep at most.
static constexpr size_t maxCalls = 400;

Value Interpreter::run(const jit::Module &module, const std::string &method, std::vector<Value> arguments) {
  arguments.insert(arguments.begin(), c10::IValue(module._ivalue()));
  layers.push_back("");
  auto results =
      runGraph(*jit::toGraphFunction(module.get_method(method).function()).graph(), std::move(arguments));
  layers.pop_back();
  return results.front();
}

std::vector<Value> Interpreter::runGraph(jit::Graph &graph, std::vector<Value> arguments) {
  if (callers.size() > maxCalls)
    fail("the model's methods call one another more than " + std::to_string(maxCalls) + " deep");
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

void Interpreter::runNode(jit::Node &node, Scope &scope) {
  if (++numNodes > maxNodes)
    fail("the model's forward runs more than " + std::to_string(maxNodes) + " operators",
         "loops of the forward must end");
  if (runStructure(node, scope))
    return;
  std::vector<Value> arguments, results;
  for (jit::Value *input : node.inputs())
    arguments.push_back(scope.at(input));
  b.setLocation(locate(node));
  try {
    if (node.kind() == prim::CallMethod)
      results = callMethod(node, std::move(arguments));
    else if (node.kind() == prim::CallFunction)
      results = callFunction(node, std::move(arguments));
    else
      results = runOperator(node, arguments);
  } catch (const Unsupported &gap) {
    noteUnsupported(node, gap.what());
  } catch (const Failure &failure) {
    if (!failure.error.message.empty() && failure.error.message[0] == '\1')
      throw; // An inner call has named the place.
    Location place = locate(node);
    std::string where = place.file.empty() ? "" : place.file + ":" + std::to_string(place.line) + ": ";
    std::string layer = place.layer.empty() ? "" : " (in " + place.layer + ")";
    throw Failure({failure.error.code, "\1" + where + failure.error.message + layer, failure.error.hint});
  }
  results.resize(node.outputs().size(), Unknown());
  for (size_t i = 0; i < results.size(); ++i)
    scope[node.outputs()[i]] = std::move(results[i]);
}

bool Interpreter::runStructure(jit::Node &node, Scope &scope) {
  auto kind = node.kind();
  if (kind == prim::Constant) {
    if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
      scope[node.output()] = Unknown(); // Its call reads the type.
    else
      scope[node.output()] = fromIValue(*jit::toIValue(node.output()));
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

std::optional<int64_t> Interpreter::knownInteger(const Value &value) const {
  if (auto *known = std::get_if<c10::IValue>(&value))
    if (known->isScalar())
      return known->toScalar().to<int64_t>();
  if (auto *tensor = std::get_if<TensorRef>(&value))
    if ((*tensor)->isKnown() && (*tensor)->numel() == 1)
      return (*tensor)->known.item().to<int64_t>();
  return std::nullopt;
}

void Interpreter::runIf(jit::Node &node, Scope &scope) {
  const Value condition = scope.at(node.input());
  auto known = knownInteger(condition);
  if (!known) {
    if (!isUnknown(condition))
      noteUnsupported(node, "a branch that depends on the model's inputs");
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
  auto trips = knownInteger(scope.at(node.inputs()[0]));
  auto condition = knownInteger(scope.at(node.inputs()[1]));
  std::vector<Value> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i)
    carried.push_back(scope.at(node.inputs()[i]));
  jit::Block &body = *node.blocks()[0];
  int64_t trip = 0;
  while (trips && condition && trip < *trips && *condition != 0) {
    if (++numNodes > maxNodes)
      fail("a loop of the model's forward does not end");
    scope[body.inputs()[0]] = c10::IValue(trip++);
    for (size_t i = 0; i < carried.size(); ++i)
      scope[body.inputs()[i + 1]] = std::move(carried[i]);
    carried = runBlock(body, scope);
    condition = knownInteger(carried.front());
    carried.erase(carried.begin());
  }
  if (!trips || !condition) {
    noteUnsupported(node, "a loop that depends on the model's inputs");
    carried.assign(node.outputs().size(), Unknown());
  }
  for (size_t i = 0; i < carried.size(); ++i)
    scope[node.outputs()[i]] = std::move(carried[i]);
}

Value Interpreter::readAttribute(jit::Node &node, const Value &object) {
  auto *known = std::get_if<c10::IValue>(&object);
  if (!known || !known->isObject())
    return Unknown();
  c10::IValue value = known->toObjectRef().getAttr(node.s(c10::attr::name));
  if (value.isTensor() && value.toTensor().defined())
    if (State *state = states.findParameter(value.toTensor())) {
      auto result = makeNamed("", value.toTensor().sizes().vec(), value.toTensor().scalar_type());
      result->state = state;
      return result;
    }
  return fromIValue(value);
}

std::vector<Value> Interpreter::callMethod(jit::Node &node, std::vector<Value> arguments) {
  auto *self = std::get_if<c10::IValue>(&arguments.front());
  if (!self || !self->isObject())
    throw Unsupported("a method call on an object that is not a module");
  const auto &object = self->toObjectRef();
  auto &method = object.type()->getMethod(node.s(c10::attr::name));
  const std::string &path = states.pathOf(object);
  layers.push_back(path.empty() ? layers.back() : path);
  callers.push_back(&node);
  auto results = runGraph(*jit::toGraphFunction(method).graph(), std::move(arguments));
  callers.pop_back();
  layers.pop_back();
  return results;
}

std::vector<Value> Interpreter::callFunction(jit::Node &node, std::vector<Value> arguments) {
  auto type = node.input(0)->type()->expect<c10::FunctionType>();
  arguments.erase(arguments.begin());
  callers.push_back(&node);
  auto results = runGraph(*jit::toGraphFunction(*type->function()).graph(), std::move(arguments));
  callers.pop_back();
  return results;
}

//===----------------------------------------------------------------------===//
// Places and what is not supported
//===----------------------------------------------------------------------===//

/// The source place of a node, as its author wrote it; empty where the archive does not say.
static Location findPlace(jit::Node &node) {
  c10::optional<jit::SourceRange> range = node.sourceRange();
  if (!range->source())
    return {};
  if (auto original = range->findSourceRangeThatGenerated())
    range = original;
  if (!range->source())
    return {};
  auto place = range->file_line_col();
  if (!place)
    return {};
  auto [file, line, column] = *place;
  return {"", file, line, column};
}

/// True for files of PyTorch itself: the user asks for the line of the model that led there.
static bool isLibrary(const std::string &file) {
  return file.find("/torch/nn/") != std::string::npos ||
         file.find("/torch/functional") != std::string::npos || file.find("/torch/_") != std::string::npos ||
         file.find("<torch_package") != std::string::npos;
}

Location Interpreter::locate(jit::Node &node) const {
  Location innermost = findPlace(node), place = innermost;
  for (size_t i = callers.size(); i-- > 0 && (place.file.empty() || isLibrary(place.file));)
    if (Location caller = findPlace(*callers[i]); !caller.file.empty())
      place = caller;
  if (place.file.empty() || isLibrary(place.file))
    place = innermost;
  place.layer = layers.empty() ? "" : layers.back();
  return place;
}

void Interpreter::noteUnsupported(jit::Node &node, const std::string &what) {
  constexpr size_t maxPlaces = 3;
  Gap &gap = gaps[what];
  ++gap.count;
  Location place = locate(node);
  std::string text = place.file.empty() ? "" : place.file + ":" + std::to_string(place.line);
  if (!place.layer.empty())
    text += (text.empty() ? "in " : " in ") + place.layer;
  if (!text.empty() && gap.places.size() < maxPlaces &&
      std::find(gap.places.begin(), gap.places.end(), text) == gap.places.end())
    gap.places.push_back(text);
}

void Interpreter::refuseUnsupported() const {
  if (gaps.empty())
    return;
  std::string list;
  for (const auto &[what, gap] : gaps) {
    list += "\n  " + what + ": " + std::to_string(gap.count) + (gap.count == 1 ? " time" : " times");
    for (size_t i = 0; i < gap.places.size(); ++i)
      list += (i ? ", " : " at ") + gap.places[i];
  }
  fail("the model uses " + std::to_string(gaps.size()) +
           (gaps.size() == 1 ? " thing that is" : " things that are") + " not supported:" + list,
       "write them with supported operators; docs/import.md lists these");
}

} // namespace ds::ts
