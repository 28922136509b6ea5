//===- Evaluation.cpp - Operators: evaluated where known, written where not -----===//

#include "Failure.h"
#include "Interpreter.h"
#include "Operators.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <set>

namespace ds::ts {

namespace jit = torch::jit;

/// A tensor of that shape and type that occupies one element: for operators that read nothing else of it.
static at::Tensor makePlaceholder(const Tensor &tensor) {
  return at::zeros({1}, at::TensorOptions().dtype(tensor.type))
      .as_strided(tensor.shape, Shape(tensor.shape.size(), 0));
}

/// True when the schema says that the operator writes argument number `index`.
static bool writes(const c10::FunctionSchema &schema, size_t index) {
  const auto *alias = schema.arguments()[index].alias_info();
  return alias && alias->isWrite();
}

bool Interpreter::canEvaluate(jit::Node &node, const std::vector<Value> &arguments) const {
  if (node.isNondeterministic())
    return false;
  std::string name = node.kind().toQualString();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!isKnown(arguments[i]) &&
        !(readsShapeOnly(name, i) && std::holds_alternative<TensorRef>(arguments[i])))
      return false;
  return true;
}

std::vector<Value> Interpreter::evaluate(jit::Node &node, const std::vector<Value> &arguments) {
  const auto *schema = node.maybeSchema();
  jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto *tensor = std::get_if<TensorRef>(&arguments[i]);
    if (tensor && schema && writes(*schema, i) && (*tensor)->isKnown() &&
        states.ownsMemoryOf((*tensor)->known))
      throw Unsupported(std::string(node.kind().toQualString()) + " that writes a buffer of the model");
    if (tensor && !(*tensor)->isKnown())
      stack.push_back(makePlaceholder(**tensor));
    else
      stack.push_back(toIValue(arguments[i], node.input(i)->type()));
  }
  node.getOperation()(stack);
  std::vector<Value> results;
  for (const c10::IValue &result : stack)
    results.push_back(fromIValue(result));
  // An operator in place returns its argument: the same object, for others may hold it.
  if (schema && !arguments.empty() && results.size() == 1 && writes(*schema, 0))
    results.front() = arguments.front();
  return results;
}

/// "aten::add" of "aten::add_"; the name itself where it does not end so.
static std::string withoutUnderscore(const std::string &name) {
  bool isPrivate = name.size() >= 2 && name.compare(name.size() - 2, 2, "__") == 0;
  return !isPrivate && name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}

/// True when the operator makes a tensor of a tensor that could not be imported: it would need an entry of
/// its own, where an operator that makes sizes or fresh tensors may well have been evaluated.
static bool combinesTensors(jit::Node &node, const std::vector<Value> &arguments) {
  auto isTensor = [](const jit::Value *value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); };
  if (!node.maybeSchema() || node.outputs().empty() || !isTensor(node.outputs()[0]))
    return false;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (isUnknown(arguments[i]) && isTensor(node.input(i)))
      return true;
  return false;
}

std::vector<Value> Interpreter::runOperator(jit::Node &node, std::vector<Value> &arguments) {
  std::string name = node.kind().toQualString();
  Handler container = findContainerOperator(name);
  bool isPoisoned = std::any_of(arguments.begin(), arguments.end(), isUnknown);
  if (!container && isPoisoned) {
    if (combinesTensors(node, arguments) && !findOperator(withoutUnderscore(name)) &&
        !readsShapeOnly(name, 0))
      noteUnsupported(node, name);
    return {};
  }
  const auto *schema = node.maybeSchema();
  if (container) {
    static const c10::FunctionSchema noSchema("prim::structure", "", {}, {});
    Call call(b, schema ? *schema : noSchema, arguments);
    call.node = &node;
    Value result = container(call);
    if (node.outputs().size() <= 1)
      return {result};
    return std::get<SequenceRef>(result)->items;
  }
  if (canEvaluate(node, arguments))
    return evaluate(node, arguments);
  Value result = runHandler(node, name, arguments);
  if (node.outputs().size() == 1)
    return {result};
  return std::get<SequenceRef>(result)->items;
}

/// True for operators that turn a tensor's elements into numbers of the program.
static bool readsElements(const std::string &name) {
  static const std::set<std::string> names = {"aten::Bool",        "aten::Int",
                                              "aten::Float",       "aten::item",
                                              "aten::tolist",      "aten::ScalarImplicit",
                                              "aten::IntImplicit", "aten::FloatImplicit",
                                              "aten::nonzero",     "aten::masked_select"};
  return names.count(name) > 0;
}

Value Interpreter::runHandler(jit::Node &node, const std::string &name, std::vector<Value> &arguments) {
  std::string base = withoutUnderscore(name);
  Handler handler = findOperator(base);
  const auto *schema = node.maybeSchema();
  if (!handler || !schema)
    throw Unsupported(
        readsElements(name) ? name + " (a number or a branch that depends on the model's inputs)" : name);
  for (size_t i = 1; i < arguments.size(); ++i)
    if (writes(*schema, i))
      throw Unsupported(name + " that writes its argument '" + schema->arguments()[i].name() + "'");
  Call call(b, *schema, arguments);
  call.node = &node;
  Value result = handler(call);
  if (base == name && !writes(*schema, 0))
    return result;
  auto *target = std::get_if<TensorRef>(&arguments.front());
  if (!target)
    throw Unsupported(name + " on a value that is not a tensor");
  writeInPlace(*target, result, name);
  return *target;
}

void Interpreter::writeInPlace(const TensorRef &target, const Value &result, const std::string &name) {
  auto *computed = std::get_if<TensorRef>(&result);
  if (!computed)
    throw Unsupported(name);
  if ((*computed)->shape != target->shape)
    fail(name + " gives shape " + spellList((*computed)->shape) + " in place of " + spellList(target->shape));
  bool isState = target->state || (target->isKnown() && states.ownsMemoryOf(target->known));
  if (target->storage)
    for (auto &member : target->storage->members)
      if (auto alias = member.lock())
        isState |= alias->state != nullptr;
  if (isState)
    throw Unsupported(name + " that writes a parameter or buffer of the model");
  if (target->isKnown() && target->known.storage().use_count() > 1)
    throw Unsupported(name + " through a view of a tensor");
  TensorRef value = b.convert(*computed, target->type);
  std::string newName = b.use(value);
  if (target->storage)
    for (auto &member : target->storage->members)
      if (auto alias = member.lock(); alias && alias != target)
        alias->isStale = true;
  *target = *makeNamed(newName, value->shape, value->type);
  target->storage = std::make_shared<Storage>();
  target->storage->members.push_back(target);
}

} // namespace ds::ts
