//===- BuilderNetwork.cpp - Writes the layers of networks -----------------------===//

#include "Builder.h"
#include "Failure.h"

namespace ds::ts {

void Builder::refuseDouble(const TensorRef &x) const {
  if (x->type == at::kDouble)
    fail((current.op.empty() ? "the loss" : current.op) + " of shape " + spellList(x->shape) +
             " is float64, in which programs compute no products, embeddings or losses",
         "export the model after model.float(), and convert what its forward makes in float64 with .float()");
}

TensorRef Builder::matmul(const TensorRef &a, const TensorRef &b, const MatmulOptions &options) {
  refuseDouble(a);
  std::string op = "ds.matmul " + use(a) + ", " + use(b), types = " : " + typeOf(a) + ", " + typeOf(b);
  if (options.bias) {
    op += " bias(" + use(options.bias) + ")";
    types += ", " + typeOf(options.bias);
  }
  if (options.accumulator) {
    op += " into(" + use(options.accumulator) + ")";
    types += " into " + typeOf(options.accumulator);
  }
  op += options.transposeLhs ? " transpose_lhs" : "";
  op += options.transposeRhs ? " transpose_rhs" : "";
  Shape shape = a->shape;
  if (options.transposeLhs)
    shape[shape.size() - 2] = a->shape.back();
  shape.back() = b->shape[b->rank() - (options.transposeRhs ? 2 : 1)];
  return emit(op + types + " -> " + spell(shape, a->type), shape, a->type);
}

TensorRef Builder::softmax(const TensorRef &x, int64_t dim, bool log) {
  return emit(std::string("ds.softmax ") + (log ? "log " : "") + use(x) + " dim " + std::to_string(dim) +
                  " : " + typeOf(x),
              x->shape, x->type);
}

TensorRef Builder::layerNorm(const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                             int64_t numDims, double epsilon) {
  std::string op = "ds.layer_norm " + use(x), types = " : " + typeOf(x);
  if (weight) {
    op += " weight(" + use(weight) + ")";
    types += ", " + typeOf(weight);
  }
  if (bias) {
    op += " bias(" + use(bias) + ")";
    types += ", " + typeOf(bias);
  }
  Shape leading(x->shape.begin(), x->shape.end() - numDims);
  std::string moment = spell(leading, x->type);
  op += " over " + std::to_string(numDims) + " epsilon " + spellDouble(epsilon) + types + " -> " + typeOf(x) +
        ", " + moment + ", " + moment;
  return emitMany(op, {{x->shape, x->type}, {leading, x->type}, {leading, x->type}}).front();
}

TensorRef Builder::rmsNorm(const TensorRef &x, const TensorRef &weight, int64_t numDims, double epsilon) {
  std::string op = "ds.rms_norm " + use(x), types = " : " + typeOf(x);
  if (weight) {
    op += " weight(" + use(weight) + ")";
    types += ", " + typeOf(weight);
  }
  Shape leading(x->shape.begin(), x->shape.end() - numDims);
  op += " over " + std::to_string(numDims) + " epsilon " + spellDouble(epsilon) + types + " -> " + typeOf(x) +
        ", " + spell(leading, x->type);
  return emitMany(op, {{x->shape, x->type}, {leading, x->type}}).front();
}

TensorRef Builder::attention(const TensorRef &query, const TensorRef &key, const TensorRef &value,
                             const TensorRef &mask, bool causal, double scale) {
  refuseDouble(query);
  std::string op = "ds.attention " + use(query) + ", " + use(key) + ", " + use(value);
  std::string types = typeOf(query) + ", " + typeOf(key) + ", " + typeOf(value);
  if (mask) {
    op += " mask(" + use(mask) + ")";
    types += ", " + typeOf(mask);
  }
  op += causal ? " causal" : "";
  Shape lse = {query->shape[0], query->shape[2], query->shape[1]};
  op += " scale " + spellDouble(scale) + " : (" + types + ") -> (" + typeOf(query) + ", " +
        spell(lse, at::kFloat) + ")";
  return emitMany(op, {{query->shape, query->type}, {lse, at::kFloat}}).front();
}

TensorRef Builder::conv(const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                        const ConvWindows &windows, const Shape &shape) {
  refuseDouble(x);
  std::string op = "ds.conv " + use(x) + ", " + use(weight), types = typeOf(x) + ", " + typeOf(weight);
  if (bias) {
    op += " bias(" + use(bias) + ")";
    types += ", " + typeOf(bias);
  }
  op += " stride " + spellList(windows.stride) + " padding " + spellList(windows.padding) + " dilation " +
        spellList(windows.dilation) + " groups " + std::to_string(windows.groups) + " : " + types + " -> ";
  return emit(op + spell(shape, x->type), shape, x->type);
}

TensorRef Builder::embedding(const TensorRef &table, const TensorRef &ids, std::optional<int64_t> padding) {
  refuseDouble(table);
  Shape shape = ids->shape;
  shape.push_back(table->shape[1]);
  std::string rows = use(table), positions = use(ids);
  std::string without = padding ? " padding_index " + std::to_string(*padding) : "";
  return emit("ds.embedding " + rows + ", " + positions + without + " : " + typeOf(table) + ", " +
                  typeOf(ids) + " -> " + spell(shape, table->type),
              shape, table->type);
}

TensorRef Builder::crossEntropy(const TensorRef &logits, const TensorRef &targets, int64_t ignoreIndex,
                                const TensorRef &denominator) {
  refuseDouble(logits);
  std::string op = "ds.cross_entropy " + use(logits) + ", " + use(targets);
  op += denominator ? " over(" + use(denominator) + ")" : "";
  Shape rows = {logits->shape[0]};
  std::string scalar = spell({}, at::kFloat);
  op += " ignore_index " + std::to_string(ignoreIndex) + " : (" + typeOf(logits) + ", " + typeOf(targets) +
        (denominator ? ", " + typeOf(denominator) : "") + ") -> (" + scalar + ", " + spell(rows, at::kFloat) +
        ", " + scalar + ")";
  return emitMany(op, {{{}, at::kFloat}, {rows, at::kFloat}, {{}, at::kFloat}}).front();
}

TensorRef Builder::dropout(const TensorRef &x, double probability) {
  std::string input = use(x), rng = useState(states.generator());
  return emit("ds.dropout " + input + ", " + rng + " probability " + spellDouble(probability) + " id " +
                  std::to_string(nextDropout++) + " : " + typeOf(x) + ", tensor<2xi64>",
              x->shape, x->type);
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

std::string Builder::finish(const std::vector<std::pair<std::string, TensorRef>> &inputs,
                            const TensorRef &result) {
  setLocation({});
  std::string value = use(result), arguments;
  states.nameConstants();
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments += (i ? ", " : "") + inputName(i) + ": " + typeOf(inputs[i].second) +
                 " {ds.input = " + quote(inputs[i].first) + "}";
  for (const State *state : used)
    arguments += (arguments.empty() ? "" : ", ") + state->argument + ": " + ds::ts::typeOf(*state) +
                 " {ds.state = @" + quote(state->name) + "}";
  std::string text = "module attributes {ds.phase = #ds.phase<model>} {\n";
  for (const State &state : states.all())
    if (state.kind == StateKind::Parameter || !state.argument.empty())
      text += declare(state);
  text += "  func.func @forward(" + arguments + ") -> " + typeOf(result) + " {\n" + body + "    return " +
          value + " : " + typeOf(result) + "\n  }\n}\n";
  return text + locations;
}

} // namespace ds::ts
