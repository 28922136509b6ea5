//===- Import.cpp - From a TorchScript archive to MLIR text and weights ---------===//

#include "Import.h"
#include "Failure.h"
#include "Interpreter.h"
#include "Loader.h"
#include "Losses.h"
#include "States.h"
#include "Weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace ds::ts {

Input parseInput(const std::string &spelling) {
  auto refuse = [&](const char *why) {
    throw Failure({ExitCode::Usage, "--input '" + spelling.substr(0, 200) + "' " + why,
                   "write it as NAME=SHAPExTYPE, for example x=4x256xi64"});
  };
  size_t equals = spelling.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("has no name");
  Input input;
  input.name = spelling.substr(0, equals);
  std::string rest = spelling.substr(equals + 1);
  size_t last = rest.rfind('x');
  input.type = parseElementType(last == std::string::npos ? rest : rest.substr(last + 1));
  if (input.type == at::ScalarType::Undefined)
    refuse("names an element type that is none of f32, f64, f16, bf16, i64, i32, i8, ui8, i1");
  const char *next = rest.data(), *end = rest.data() + (last == std::string::npos ? 0 : last);
  while (next < end) {
    int64_t size = 0;
    auto [stop, error] = std::from_chars(next, end, size);
    if (error != std::errc() || size < 1 || *next == '0' || (stop != end && *stop != 'x'))
      refuse("has a size that is not a positive number");
    input.shape.push_back(size);
    next = stop + 1;
  }
  int64_t count = 1;
  for (int64_t size : input.shape)
    if (__builtin_mul_overflow(count, size, &count) || count > (int64_t(1) << 40))
      refuse("has more than 2^40 elements");
  return input;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static const Input *findInput(const Request &request, const std::string &name) {
  for (const Input &input : request.inputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

static std::string listNames(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list.empty() ? "none" : list;
}

namespace {
/// The forward's arguments as the interpreter takes them, and the module's inputs.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, TensorRef>> inputs;
  TensorRef label;
};
} // namespace

static TensorRef addInput(Arguments &arguments, const Input &input) {
  TensorRef tensor = makeNamed(FunctionText::inputName(arguments.inputs.size()), input.shape, input.type);
  arguments.inputs.emplace_back(input.name, tensor);
  return tensor;
}

/// True when a tensor may be passed for the argument.
static bool takesTensor(const c10::Argument &argument) {
  return c10::TensorType::get()->isSubtypeOf(*argument.type());
}

/// Matches --input with the forward's arguments by name; all differences are told at once.
static Arguments bindArguments(const Request &request, const c10::FunctionSchema &schema) {
  Arguments result;
  std::vector<std::string> expected, given, missing, unknown;
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::Argument &argument = schema.arguments()[i];
    if (takesTensor(argument))
      expected.push_back(argument.name());
    const Input *input = findInput(request, argument.name());
    if (input && !takesTensor(argument))
      fail("the forward's argument '" + argument.name() + "' is " + argument.type()->annotation_str() +
           ", not a tensor: --input cannot give it");
    if (input)
      result.values.push_back(addInput(result, *input));
    else if (argument.default_value())
      result.values.push_back(fromIValue(*argument.default_value()));
    else
      missing.push_back(argument.name());
  }
  const Input *label = nullptr;
  for (const Input &input : request.inputs) {
    given.push_back(input.name);
    if (std::find(expected.begin(), expected.end(), input.name) == expected.end()) {
      unknown.push_back(input.name);
      label = &input;
    }
  }
  bool wantsLabel = !request.loss.empty();
  if (!missing.empty() || unknown.size() != (wantsLabel ? 1 : 0))
    fail((given.empty() ? "no --input is given" : "--input gives " + listNames(given)) +
             ", but the forward takes " + listNames(expected) +
             (wantsLabel ? " and --loss a label of another name" : "") +
             (given.empty() ? ""
                            : " (missing: " + listNames(missing) + "; unknown: " + listNames(unknown) + ")"),
         "give each tensor argument once, as --input NAME=SHAPExTYPE, for example --input " +
             (expected.empty() ? "x" : expected.front()) + "=4x256xi64" +
             std::string(wantsLabel ? ", and the label under a name that is not an argument" : ""));
  if (wantsLabel)
    result.label = addInput(result, *label);
  return result;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// All tensors of a result, in order.
static void collectTensors(const Value &value, std::vector<TensorRef> &tensors) {
  if (auto *tensor = std::get_if<TensorRef>(&value))
    tensors.push_back(*tensor);
  if (auto *sequence = std::get_if<SequenceRef>(&value))
    for (const Value &item : (*sequence)->items)
      collectTensors(item, tensors);
  if (auto *dictionary = std::get_if<DictionaryRef>(&value))
    for (const auto &item : (*dictionary)->items)
      collectTensors(item.second, tensors);
}

/// The loss: what --loss makes of the first float tensor, or the only float tensor of one element.
static TensorRef findLoss(Builder &b, const Request &request, const Value &result,
                          const Arguments &arguments) {
  std::vector<TensorRef> tensors, losses;
  collectTensors(result, tensors);
  if (!request.loss.empty()) {
    for (const TensorRef &tensor : tensors)
      if (c10::isFloatingType(tensor->type))
        return addLoss(b, request.loss, tensor, arguments.label);
    fail("the forward returns no float tensor that --loss could compare with the label");
  }
  std::string shapes;
  for (const TensorRef &tensor : tensors) {
    shapes += (shapes.empty() ? "" : ", ") + spell(tensor->shape, tensor->type);
    if (c10::isFloatingType(tensor->type) && tensor->numel() == 1)
      losses.push_back(tensor);
  }
  if (losses.size() != 1)
    fail("the forward must return one loss, a float tensor of one element, but returns " +
             (shapes.empty() ? "no tensor that depends on the inputs" : shapes),
         "add --loss cross_entropy or --loss mse and a label input where the model returns logits");
  return losses.front();
}

/// The whole loss as f32 of rank 0.
static TensorRef asLoss(Builder &b, const TensorRef &loss) {
  return b.convert(b.reshape(loss, {}), at::kFloat);
}

/// What the forward makes of buffers that it writes.
static std::vector<FunctionText::Update> collectUpdates(Builder &b) {
  std::vector<FunctionText::Update> updates;
  for (State &state : b.states.all())
    if (state.isUpdated && state.current->state != &state) {
      b.text.argument(state); // also where its value so far is read by nothing
      updates.push_back({&state, b.use(state.current)});
    }
  return updates;
}

/// Runs the forward once and returns the module's text. `states` says then which buffers it has written.
static std::string runForward(const Request &request, const torch::jit::Module &module,
                              const c10::FunctionSchema &schema, States &states) {
  for (const State &state : states.all())
    if (state.kind == StateKind::Parameter && state.value.scalar_type() == at::kDouble)
      fail("the parameter '" + state.name + "' is float64, which programs do not train",
           "export the model after model.float()");
  FunctionText text;
  Builder b(states, text);
  Arguments arguments = bindArguments(request, schema);
  Interpreter interpreter(b, states);
  Value result = interpreter.run(module, "forward", arguments.values);
  interpreter.refuseUnsupported();
  if (auto *unknown = std::get_if<Unknown>(&result))
    fail(std::string("the forward returns ") + (unknown->what ? unknown->what : "a value that is not known") +
             ", which is not supported",
         "return the loss, or a tuple, list or dictionary with it");
  text.setLocation({"loss", "", 0, 0});
  TensorRef loss = asLoss(b, findLoss(b, request, result, arguments));
  text.setLocation({});
  std::string value = b.use(loss);
  std::vector<FunctionText::Update> updates = collectUpdates(b);
  return text.finish(states, arguments.inputs, loss, value, updates);
}

/// A buffer that the forward writes is known for one only once it is written; what was read of it before may
/// have been taken for a constant. So a forward that has written any runs again, with all of them as states.
void importModel(const Request &request) {
  at::NoGradGuard noGrad;
  torch::jit::Module module = loadModule(request);
  auto method = module.find_method("forward");
  if (!method)
    fail("the archive's module has no method forward");
  std::set<std::string> updated;
  for (;;) {
    States states(module, updated);
    std::string text = runForward(request, module, method->function().getSchema(), states);
    std::set<std::string> found = states.namesOfUpdated();
    if (found == updated) {
      states.refuseAssumed();
      writeAll(request.mlirFd, text);
      if (request.weightsFd >= 0)
        writeWeights(request.weightsFd, states);
      return;
    }
    updated.insert(found.begin(), found.end());
  }
}

} // namespace ds::ts
