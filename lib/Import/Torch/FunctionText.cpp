//===- FunctionText.cpp - The lines of the imported function, and their names ---===//

#include "FunctionText.h"
#include "Literals.h"

namespace ds::ts {

//===----------------------------------------------------------------------===//
// Lines, names and locations
//===----------------------------------------------------------------------===//

std::string FunctionText::locationSuffix() {
  std::string place;
  if (!current.file.empty())
    place = quote(current.file) + ":" + std::to_string(current.line) + ":" + std::to_string(current.column);
  if (!current.layer.empty())
    place = quote(current.layer) + (place.empty() ? "" : "(" + place + ")");
  if (place.empty())
    return "";
  auto [entry, isNew] = locationIds.emplace(place, locationIds.size());
  std::string name = "#loc" + std::to_string(entry->second);
  if (isNew)
    locations += name + " = loc(" + place + ")\n";
  return " loc(" + name + ")";
}

TensorRef FunctionText::emit(const std::string &op, Shape shape, at::ScalarType type) {
  return emitMany(op, {{std::move(shape), type}}).front();
}

std::vector<TensorRef> FunctionText::emitMany(const std::string &op,
                                              const std::vector<std::pair<Shape, at::ScalarType>> &types) {
  std::string name = "%" + std::to_string(nextValue++);
  std::string count = types.size() == 1 ? "" : ":" + std::to_string(types.size());
  body += "    " + name + count + " = " + op + locationSuffix() + "\n";
  std::vector<TensorRef> results;
  for (size_t i = 0; i < types.size(); ++i)
    results.push_back(makeNamed(types.size() == 1 ? name : name + "#" + std::to_string(i), types[i].first,
                                types[i].second));
  return results;
}

std::string FunctionText::argument(State &state) {
  if (state.argument.empty()) {
    state.argument = "%w" + std::to_string(used.size());
    used.push_back(&state);
  }
  return state.argument;
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

static const char *roleOf(StateKind kind) {
  switch (kind) {
  case StateKind::Parameter:
    return "parameter";
  case StateKind::Buffer:
  case StateKind::Constant:
    return "buffer";
  case StateKind::Generator:
    return "scalar";
  }
  return "";
}

/// "tensor<4x8xf32>" of a state's value.
static std::string typeOf(const State &state) {
  if (state.kind == StateKind::Generator)
    return "tensor<2xi64>";
  return spell(state.value.sizes().vec(), state.value.scalar_type());
}

static std::string declare(const State &state) {
  std::string text = "  ds.state @" + quote(state.name) + " role(" + roleOf(state.kind) + ")";
  text += state.trainable ? " trainable" : "";
  for (size_t i = 0; i < state.aliases.size(); ++i)
    text += (i ? ", " : " aliases [") + quote(state.aliases[i]);
  text += state.aliases.empty() ? "" : "]";
  Init init = measureInit(state);
  return text + " init(#ds.init<" + init.kind + ", " + spellDouble(init.a) + ", " + spellDouble(init.b) +
         ">) home(device) : " + typeOf(state) + "\n";
}

std::string FunctionText::finish(States &states, const std::vector<std::pair<std::string, TensorRef>> &inputs,
                                 const TensorRef &result, const std::string &value,
                                 const std::vector<Update> &updates) {
  states.nameConstants();
  std::string arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments += (i ? ", " : "") + inputName(i) + ": " + typeOf(inputs[i].second) +
                 " {ds.input = " + quote(inputs[i].first) + "}";
  for (const State *state : used)
    arguments += (arguments.empty() ? "" : ", ") + state->argument + ": " + typeOf(*state) +
                 " {ds.state = @" + quote(state->name) + "}";
  std::string text = "module attributes {ds.phase = #ds.phase<model>} {\n";
  for (const State &state : states.all())
    if (state.kind == StateKind::Parameter || !state.argument.empty())
      text += declare(state);
  std::string results = typeOf(result), values = value, types = results;
  for (const Update &update : updates) {
    results += ", " + typeOf(*update.state) + " {ds.state = @" + quote(update.state->name) + "}";
    values += ", " + update.value;
    types += ", " + typeOf(*update.state);
  }
  if (!updates.empty())
    results = "(" + results + ")";
  text += "  func.func @forward(" + arguments + ") -> " + results + " {\n" + body + "    return " + values +
          " : " + types + "\n  }\n}\n";
  return text + locations;
}

} // namespace ds::ts
