//===- NetworkOps.cpp - Writes the ops of layers ----------------------------------===//

#include "NetworkOps.h"
#include "Failure.h"

namespace ds::ts {

/// Fails for float64, in which the runtime's libraries compute nothing.
static void refuseDouble(const Builder &b, const TensorRef &x) {
  const std::string &op = b.text.location().op;
  if (x->type == at::kDouble)
    fail((op.empty() ? "the loss" : op) + " of shape " + spellList(x->shape) +
             " is float64, in which programs compute no products, embeddings or losses",
         "export the model after model.float(), and convert what its forward makes in float64 with .float()");
}

namespace {
/// An op while its operands are added: what stands before its colon, and the types behind it.
struct OpText {
  Builder &b;
  std::string op, types;

  /// Adds an operand that may be null, as `keyword(%x)`.
  void addOptional(const char *keyword, const TensorRef &x, const char *separator = ", ") {
    if (!x)
      return;
    op += std::string(" ") + keyword + "(" + b.use(x) + ")";
    types += separator + typeOf(x);
  }
};
} // namespace

TensorRef emitMatmul(Builder &b, const TensorRef &lhs, const TensorRef &rhs, const MatmulOptions &options) {
  refuseDouble(b, lhs);
  OpText text{b, "ds.matmul " + b.use(lhs) + ", " + b.use(rhs), " : " + typeOf(lhs) + ", " + typeOf(rhs)};
  text.addOptional("bias", options.bias);
  text.addOptional("into", options.accumulator, " into ");
  text.op += options.transposeLhs ? " transpose_lhs" : "";
  text.op += options.transposeRhs ? " transpose_rhs" : "";
  Shape shape = lhs->shape;
  if (options.transposeLhs)
    shape[shape.size() - 2] = lhs->shape.back();
  shape.back() = rhs->shape[rhs->rank() - (options.transposeRhs ? 2 : 1)];
  return b.text.emit(text.op + text.types + " -> " + spell(shape, lhs->type), shape, lhs->type);
}

TensorRef emitSoftmax(Builder &b, const TensorRef &x, int64_t dim, bool log) {
  return b.text.emit(std::string("ds.softmax ") + (log ? "log " : "") + b.use(x) + " dim " +
                         std::to_string(dim) + " : " + typeOf(x),
                     x->shape, x->type);
}

/// A normalisation of the last `numDims` dimensions, which also gives `numMoments` statistics of each row.
static TensorRef emitNorm(OpText text, const TensorRef &x, int64_t numDims, double epsilon,
                          size_t numMoments) {
  Shape leading(x->shape.begin(), x->shape.end() - numDims);
  text.op += " over " + std::to_string(numDims) + " epsilon " + spellDouble(epsilon) + text.types + " -> " +
             typeOf(x);
  std::vector<std::pair<Shape, at::ScalarType>> results = {{x->shape, x->type}};
  for (size_t i = 0; i < numMoments; ++i) {
    text.op += ", " + spell(leading, x->type);
    results.emplace_back(leading, x->type);
  }
  return text.b.text.emitMany(text.op, results).front();
}

TensorRef emitLayerNorm(Builder &b, const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                        int64_t numDims, double epsilon) {
  OpText text{b, "ds.layer_norm " + b.use(x), " : " + typeOf(x)};
  text.addOptional("weight", weight);
  text.addOptional("bias", bias);
  return emitNorm(std::move(text), x, numDims, epsilon, 2);
}

TensorRef emitRmsNorm(Builder &b, const TensorRef &x, const TensorRef &weight, int64_t numDims,
                      double epsilon) {
  OpText text{b, "ds.rms_norm " + b.use(x), " : " + typeOf(x)};
  text.addOptional("weight", weight);
  return emitNorm(std::move(text), x, numDims, epsilon, 1);
}

TensorRef emitAttention(Builder &b, const TensorRef &query, const TensorRef &key, const TensorRef &value,
                        const TensorRef &mask, bool causal, double scale) {
  refuseDouble(b, query);
  OpText text{b, "ds.attention " + b.use(query) + ", " + b.use(key) + ", " + b.use(value),
              typeOf(query) + ", " + typeOf(key) + ", " + typeOf(value)};
  text.addOptional("mask", mask);
  text.op += causal ? " causal" : "";
  Shape lse = {query->shape[0], query->shape[2], query->shape[1]};
  text.op += " scale " + spellDouble(scale) + " : (" + text.types + ") -> (" + typeOf(query) + ", " +
             spell(lse, at::kFloat) + ")";
  return b.text.emitMany(text.op, {{query->shape, query->type}, {lse, at::kFloat}}).front();
}

static std::string spellWindows(const ConvWindows &windows) {
  return " stride " + spellList(windows.stride) + " padding " + spellList(windows.padding) + " dilation " +
         spellList(windows.dilation) + " groups " + std::to_string(windows.groups);
}

TensorRef emitConv(Builder &b, const TensorRef &x, const TensorRef &weight, const TensorRef &bias,
                   const ConvWindows &windows, const Shape &shape) {
  refuseDouble(b, x);
  OpText text{b, "ds.conv " + b.use(x) + ", " + b.use(weight), typeOf(x) + ", " + typeOf(weight)};
  text.addOptional("bias", bias);
  text.op += spellWindows(windows) + " : " + text.types + " -> ";
  return b.text.emit(text.op + spell(shape, x->type), shape, x->type);
}

TensorRef emitTransposedConv(Builder &b, const TensorRef &x, const TensorRef &weight,
                             const ConvWindows &windows, const Shape &shape) {
  refuseDouble(b, x);
  std::string filters = b.use(weight), grad = b.use(x);
  return b.text.emit("ds.conv_grad_input " + filters + ", " + grad + spellWindows(windows) + " : " +
                         typeOf(weight) + ", " + typeOf(x) + " -> " + spell(shape, x->type),
                     shape, x->type);
}

TensorRef emitBatchNorm(Builder &b, const TensorRef &x, const BatchNorm &norm) {
  const at::ScalarType type = x->type == at::kDouble ? at::kDouble : at::kFloat;
  const std::string channels = spell({x->shape[1]}, type);
  OpText text{b, "ds.batch_norm " + b.use(x), " : (" + typeOf(x)};
  text.addOptional("weight", norm.weight);
  text.addOptional("bias", norm.bias);
  std::string results = ") -> (" + typeOf(x) + ", " + channels + ", " + channels;
  std::vector<std::pair<Shape, at::ScalarType>> types = {{x->shape, x->type}};
  types.resize(norm.runningMean ? 5 : 3, {{x->shape[1]}, type});
  if (norm.runningMean) {
    text.op += " running(" + b.use(norm.runningMean) + ", " + b.use(norm.runningVariance) + ")";
    text.types += ", " + typeOf(norm.runningMean) + ", " + typeOf(norm.runningVariance);
    results += ", " + channels + ", " + channels;
  }
  text.op += " momentum " + spellDouble(norm.momentum) + " epsilon " + spellDouble(norm.epsilon);
  std::vector<TensorRef> values = b.text.emitMany(text.op + text.types + results + ")", types);
  if (norm.runningMean) {
    overwrite(b, norm.runningMean, values[3]);
    overwrite(b, norm.runningVariance, values[4]);
  }
  return values.front();
}

TensorRef emitDetach(Builder &b, const TensorRef &x) { return b.unary("detach", x); }

TensorRef emitEmbedding(Builder &b, const TensorRef &table, const TensorRef &ids,
                        std::optional<int64_t> padding) {
  refuseDouble(b, table);
  Shape shape = ids->shape;
  shape.push_back(table->shape[1]);
  std::string rows = b.use(table), positions = b.use(ids);
  std::string without = padding ? " padding_index " + std::to_string(*padding) : "";
  return b.text.emit("ds.embedding " + rows + ", " + positions + without + " : " + typeOf(table) + ", " +
                         typeOf(ids) + " -> " + spell(shape, table->type),
                     shape, table->type);
}

TensorRef emitCrossEntropy(Builder &b, const TensorRef &logits, const TensorRef &targets, int64_t ignoreIndex,
                           const TensorRef &denominator) {
  refuseDouble(b, logits);
  std::string op = "ds.cross_entropy " + b.use(logits) + ", " + b.use(targets);
  op += denominator ? " over(" + b.use(denominator) + ")" : "";
  Shape rows = {logits->shape[0]};
  std::string scalar = spell({}, at::kFloat);
  op += " ignore_index " + std::to_string(ignoreIndex) + " : (" + typeOf(logits) + ", " + typeOf(targets) +
        (denominator ? ", " + typeOf(denominator) : "") + ") -> (" + scalar + ", " + spell(rows, at::kFloat) +
        ", " + scalar + ")";
  return b.text.emitMany(op, {{{}, at::kFloat}, {rows, at::kFloat}, {{}, at::kFloat}}).front();
}

TensorRef emitDropout(Builder &b, const TensorRef &x, double probability) {
  std::string input = b.use(x), rng = b.text.argument(b.states.generator());
  return b.text.emit("ds.dropout " + input + ", " + rng + " probability " + spellDouble(probability) +
                         " id " + std::to_string(b.text.nextDropout()) + " : " + typeOf(x) +
                         ", tensor<2xi64>",
                     x->shape, x->type);
}

} // namespace ds::ts
