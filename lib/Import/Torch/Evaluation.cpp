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

/// True when the schema says that the operator writes argument number `index`. What a variable number of
/// arguments stands for has no entry in the schema.
static bool writes(const c10::FunctionSchema &schema, size_t index) {
  if (index >= schema.arguments().size())
    return false;
  const auto *alias = schema.arguments()[index].alias_info();
  return alias && alias->isWrite();
}

/// True for operators that draw random numbers: LibTorch's own list names neither those in place nor the
/// rarer dropouts, but what draws takes a generator.
static bool isRandom(jit::Node &node, const std::string &name) {
  static const std::set<std::string> dropouts = {"aten::dropout",
                                                 "aten::dropout_",
                                                 "aten::alpha_dropout",
                                                 "aten::alpha_dropout_",
                                                 "aten::feature_dropout",
                                                 "aten::feature_dropout_",
                                                 "aten::feature_alpha_dropout",
                                                 "aten::feature_alpha_dropout_"};
  if (node.isNondeterministic() || dropouts.count(name) > 0)
    return true;
  const auto *schema = node.maybeSchema();
  return schema &&
         std::any_of(schema->arguments().begin(), schema->arguments().end(), [](const auto &argument) {
           return argument.type()->annotation_str().find("Generator") != std::string::npos;
         });
}

static bool canEvaluate(jit::Node &node, const std::vector<Value> &arguments) {
  std::string name = node.kind().toQualString();
  if (!node.maybeOperator() || isRandom(node, name))
    return false;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!isKnown(arguments[i]) &&
        !(readsShapeOnly(name, i) && std::holds_alternative<TensorRef>(arguments[i])))
      return false;
  return true;
}

/// The same tensor, or a name of all of it.
static bool isSameTensor(const at::Tensor &a, const at::Tensor &b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

/// The same of one value; a result that is the value itself assumes nothing.
static void noteElements(States &states, const Value &value, const at::Tensor &result) {
  if (auto *tensor = std::get_if<TensorRef>(&value)) {
    const at::Tensor &known = (*tensor)->known;
    if (known.defined() && !(result.defined() && isSameTensor(known, result)))
      states.noteRead(known);
  }
  if (auto *sequence = std::get_if<SequenceRef>(&value))
    for (const Value &item : (*sequence)->items)
      noteElements(states, item, result);
}

/// An operator has looked at these arguments: what it found is assumed from here on.
static void noteElements(States &states, jit::Node &node, const std::vector<Value> &arguments,
                         const std::vector<Value> &results) {
  std::string name = node.kind().toQualString();
  auto *result = results.size() == 1 ? std::get_if<TensorRef>(&results.front()) : nullptr;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!readsShapeOnly(name, i))
      noteElements(states, arguments[i], result ? (*result)->known : at::Tensor());
}

static std::vector<Value> evaluate(States &states, jit::Node &node, const std::vector<Value> &arguments) {
  const auto *schema = node.maybeSchema();
  jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto *tensor = std::get_if<TensorRef>(&arguments[i]);
    if (tensor && schema && writes(*schema, i) && (*tensor)->isKnown() &&
        states.ownsMemoryOf((*tensor)->known))
      throw UnsupportedWrite(std::string(node.kind().toQualString()) + " that writes a buffer of the model");
    if (tensor && !(*tensor)->isKnown())
      stack.push_back(makePlaceholder(**tensor));
    else
      stack.push_back(toIValue(arguments[i], node.input(i)->type()));
  }
  if (schema && schema->is_vararg()) // Such an operator is told how many arguments lie on the stack.
    stack.emplace_back(static_cast<int64_t>(arguments.size()));
  node.getOperation()(stack);
  std::vector<Value> results;
  for (const c10::IValue &result : stack)
    results.push_back(fromIValue(asTensor(result))); // what an operator returns is no number of the program
  noteElements(states, node, arguments, results);
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

/// True when an operator on lists, dictionaries or None reads an argument that could not be imported; what it
/// only holds or hands on may be anything.
static bool readsUnknown(const std::string &name, const std::vector<Value> &arguments) {
  static const std::set<std::string> holders = {"prim::ListConstruct",
                                                "prim::TupleConstruct",
                                                "prim::DictConstruct",
                                                "prim::unchecked_cast",
                                                "aten::_unwrap_optional",
                                                "prim::unchecked_unwrap_optional",
                                                "prim::profile",
                                                "aten::__is__",
                                                "aten::__isnot__",
                                                "aten::warn",
                                                "prim::Print",
                                                "prim::RaiseException"};
  static const std::map<std::string, size_t> held = {
      {"aten::append", 1}, {"aten::insert", 2}, {"aten::_set_item", 2}};
  if (holders.count(name) > 0)
    return false;
  auto element = held.find(name);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (std::holds_alternative<Unknown>(arguments[i]) && !(element != held.end() && element->second == i))
      return true;
  return false;
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

/// The attribute that a SetAttr assigns, the class of an object that is made.
static std::string nameStructure(jit::Node &node, const std::string &name) {
  if (node.kind() == c10::prim::CreateObject)
    if (auto type = node.output()->type()->cast<c10::ClassType>(); type && type->name())
      return name + " of class " + type->name()->name();
  return name;
}

static void writeInPlace(Builder &b, const TensorRef &target, const Value &result, const std::string &name) {
  auto *computed = std::get_if<TensorRef>(&result);
  if (!computed)
    throw Unsupported(name);
  if ((*computed)->shape != target->shape)
    fail(name + " gives shape " + spellList((*computed)->shape) + " in place of " + spellList(target->shape));
  if (b.states.updateBuffer(target))
    return overwrite(b, target, *computed);
  bool isState = target->state || (target->isKnown() && b.states.ownsMemoryOf(target->known));
  if (target->storage)
    for (auto &member : target->storage->members)
      if (auto alias = member.lock())
        isState |= alias->state != nullptr;
  if (isState)
    throw UnsupportedWrite(name + " that writes a parameter or buffer of the model");
  if (target->isKnown() && target->known.storage().use_count() > 1)
    throw Unsupported(name + " through a view of a tensor");
  overwrite(b, target, *computed);
}

/// True where the assigned attribute is a buffer, which has that value from then on.
static bool assignBuffer(Builder &b, jit::Node &node, const std::vector<Value> &arguments) {
  auto *object = std::get_if<c10::IValue>(&arguments[0]);
  auto *value = std::get_if<TensorRef>(&arguments[1]);
  if (!value || !object || !object->isObject())
    return false;
  c10::IValue attribute = object->toObjectRef().getAttr(node.s(c10::attr::name));
  return attribute.isTensor() && b.states.assignBuffer(attribute.toTensor(), *value);
}

static Value runHandler(Builder &b, jit::Node &node, const std::string &name, std::vector<Value> &arguments) {
  std::string base = withoutUnderscore(name);
  Handler handler = findOperator(base);
  const auto *schema = node.maybeSchema();
  if (node.kind() == c10::prim::SetAttr && assignBuffer(b, node, arguments))
    return makeTuple({}); // it has no results
  if (node.kind() == c10::prim::SetAttr)
    throw UnsupportedWrite(name + " that assigns the attribute '" + node.s(c10::attr::name) +
                           "' of a module");
  if (!handler || !schema)
    throw Unsupported(readsElements(name)
                          ? name + " (a number or a branch that depends on the model's inputs)"
                          : nameStructure(node, name));
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
  writeInPlace(b, *target, result, name);
  return *target;
}

std::vector<Value> Interpreter::runOperator(jit::Node &node, std::vector<Value> &arguments) {
  std::string name = node.kind().toQualString();
  Handler container = findContainerOperator(name);
  bool isPoisoned = std::any_of(arguments.begin(), arguments.end(), isUnknown);
  if (container && readsUnknown(name, arguments)) {
    gaps.noteRead(node, arguments);
    return {};
  }
  if (!container && isPoisoned) {
    gaps.noteRead(node, arguments);
    if (combinesTensors(node, arguments) && !findOperator(withoutUnderscore(name)) &&
        !readsShapeOnly(name, 0))
      gaps.note(node, name);
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
  if (schema && !arguments.empty() && writes(*schema, 0))
    if (auto *target = std::get_if<TensorRef>(&arguments.front()))
      states.updateBuffer(*target); // whose elements are not known any more
  if (canEvaluate(node, arguments))
    return evaluate(states, node, arguments);
  Value result = runHandler(b, node, name, arguments);
  if (node.outputs().size() == 1)
    return {result};
  return std::get<SequenceRef>(result)->items;
}

} // namespace ds::ts
