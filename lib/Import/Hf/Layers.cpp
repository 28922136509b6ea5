//===- Layers.cpp - The layers that the architectures share ---------------------===//

#include "Layers.h"
#include "ds/Support/HeadSize.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

int64_t hf::width(Value x) { return tensorType(x).getShape().back(); }

/// x [..., K] times a matrix, with an optional row added.
static Value multiply(Emitter e, Value x, Value matrix, Value bias, bool transposed) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.back() = tensorType(matrix).getDimSize(transposed ? 0 : 1);
  return e.getBuilder()
      .create<MatmulOp>(e.getLoc(), tensorType(x).clone(shape), x, matrix, bias, /*transposeLhs=*/false,
                        transposed)
      .getResult();
}

Value hf::linear(Graph &g, llvm::StringRef name, Value x, int64_t columns, bool bias, double deviation) {
  Scope scope(g, name);
  Value weight = g.parameter("weight", {columns, width(x)}, Init::normal(deviation));
  Value row = bias ? g.parameter("bias", {columns}, Init::zeros()) : Value();
  return multiply(g.ops(), x, weight, row, /*transposed=*/true);
}

Value hf::conv1d(Graph &g, llvm::StringRef name, Value x, int64_t columns, double deviation) {
  Scope scope(g, name);
  Value weight = g.parameter("weight", {width(x), columns}, Init::normal(deviation));
  Value bias = g.parameter("bias", {columns}, Init::zeros());
  Emitter e = g.ops();
  SmallVector<int64_t> shape(tensorType(x).getShape());
  Value rows = e.reshape(x, {tensorType(x).getNumElements() / width(x), width(x)});
  shape.back() = columns;
  return e.reshape(multiply(e, rows, weight, bias, /*transposed=*/false), shape);
}

Value hf::project(Graph &g, Value x, Value matrix, Value bias) {
  return multiply(g.ops(), x, matrix, bias, /*transposed=*/true);
}

/// (x - mean) / deviation * weight + bias over the last dimension; either may be null.
static Value emitLayerNorm(Emitter e, Value x, Value weight, Value bias, double epsilon) {
  RankedTensorType type = tensorType(x), row = type.clone(type.getShape().drop_back());
  return e.getBuilder()
      .create<LayerNormOp>(e.getLoc(), type, row, row, x, weight, bias, e.getBuilder().getI64IntegerAttr(1),
                           e.getBuilder().getF64FloatAttr(epsilon))
      .getResult();
}

/// x / root mean square * weight over the last dimension; the weight may be null.
static Value emitRmsNorm(Emitter e, Value x, Value weight, double epsilon) {
  RankedTensorType type = tensorType(x), row = type.clone(type.getShape().drop_back());
  return e.getBuilder()
      .create<RmsNormOp>(e.getLoc(), type, row, x, weight, e.getBuilder().getI64IntegerAttr(1),
                         e.getBuilder().getF64FloatAttr(epsilon))
      .getResult();
}

static bool isRms(NormKind kind) { return kind == NormKind::Rms || kind == NormKind::RmsAddOne; }
static bool addsOne(NormKind kind) { return kind == NormKind::RmsAddOne || kind == NormKind::LayerAddOne; }
static bool hasBias(NormKind kind) { return kind == NormKind::Layer || kind == NormKind::LayerAddOne; }

int64_t hf::normParameters(const Norm &norm, int64_t width) {
  return (norm.kind == NormKind::LayerPlain ? 0 : width) + (hasBias(norm.kind) ? width : 0);
}

Value hf::plainNorm(Graph &g, Value x, const Norm &norm) {
  return isRms(norm.kind) ? emitRmsNorm(g.ops(), x, {}, norm.epsilon)
                          : emitLayerNorm(g.ops(), x, {}, {}, norm.epsilon);
}

Value hf::norm(Graph &g, llvm::StringRef name, Value x, const Norm &norm) {
  Scope scope(g, name);
  if (norm.kind == NormKind::LayerPlain)
    return plainNorm(g, x, norm);
  const bool isOffset = addsOne(norm.kind);
  Value weight = g.parameter("weight", {width(x)}, isOffset ? Init::zeros() : Init::ones());
  Value bias = hasBias(norm.kind) ? g.parameter("bias", {width(x)}, Init::zeros()) : Value();
  Emitter e = g.ops();
  if (isOffset)
    weight = e.shift(weight, 1);
  return isRms(norm.kind) ? emitRmsNorm(e, x, weight, norm.epsilon)
                          : emitLayerNorm(e, x, weight, bias, norm.epsilon);
}

Value hf::layerNorm(Graph &g, llvm::StringRef name, Value x, double epsilon) {
  return norm(g, name, x, {NormKind::Layer, epsilon});
}

Value hf::rmsNorm(Graph &g, llvm::StringRef name, Value x, double epsilon) {
  return norm(g, name, x, {NormKind::Rms, epsilon});
}

Value hf::lookUp(Emitter e, Value table, Value ids, std::optional<int64_t> padding) {
  SmallVector<int64_t> shape(tensorType(ids).getShape());
  shape.push_back(width(table));
  OpBuilder &b = e.getBuilder();
  return b.create<EmbeddingOp>(e.getLoc(), tensorType(table).clone(shape), table, ids,
                               /*part=*/false, padding ? b.getI64IntegerAttr(*padding) : IntegerAttr());
}

Value hf::embedding(Graph &g, llvm::StringRef name, Value ids, int64_t rows, int64_t columns,
                    double deviation, std::optional<int64_t> padding) {
  Scope scope(g, name);
  Value table = g.parameter("weight", {rows, columns}, Init::normal(deviation));
  return lookUp(g.ops(), table, ids, padding);
}

/// first, first + 1, ... along dimension `dim`.
static Value count(Emitter e, ArrayRef<int64_t> shape, Type element, int64_t dim, int64_t first = 0) {
  return e.getBuilder().create<IotaOp>(e.getLoc(), RankedTensorType::get(shape, element), dim, first, 1);
}

Value hf::addPositions(Graph &g, llvm::StringRef name, Value x, int64_t rows, double deviation,
                       int64_t first) {
  Value positions;
  {
    Scope scope(g, name);
    Value table = g.parameter("weight", {rows, width(x)}, Init::normal(deviation));
    Emitter e = g.ops();
    Value ids = g.tokens.positions;
    if (!ids)
      ids = count(e, {tensorType(x).getDimSize(1)}, e.getBuilder().getI64Type(), 0, first);
    else if (first > 0)
      ids = e.shift(ids, static_cast<double>(first));
    positions = lookUp(e, table, ids);
  }
  Emitter e = g.ops();
  return e.add(x, g.tokens.positions ? positions : e.repeatRows(positions, tensorType(x).getShape()));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

static Value geluErf(Emitter &e, Value x) {
  return e.getBuilder().create<GeluOp>(e.getLoc(), x, /*tanh=*/false);
}

static Value geluTanh(Emitter &e, Value x) {
  return e.getBuilder().create<GeluOp>(e.getLoc(), x, /*tanh=*/true);
}

static Value quickGelu(Emitter &e, Value x) { return e.mul(x, e.unary<SigmoidOp>(e.scale(x, 1.702))); }

/// 0 where x <= 0, else x: NaN stays, and so does its gradient.
static Value relu(Emitter &e, Value x) {
  Value zero = e.splatLike(x, 0);
  return e.select(e.compare(Predicate::LE, x, zero), zero, x);
}

static Value reluSquared(Emitter &e, Value x) {
  Value positive = relu(e, x);
  return e.mul(positive, positive);
}

static Value silu(Emitter &e, Value x) { return e.mul(x, e.unary<SigmoidOp>(x)); }

namespace {
/// An activation by the name that configurations have for it.
struct Activation {
  llvm::StringLiteral name;
  Value (*emit)(Emitter &, Value);
};
} // namespace

static constexpr Activation kActivations[] = {
    {"gelu", geluErf},
    {"gelu_python", geluErf},
    {"gelu_new", geluTanh},
    {"gelu_fast", geluTanh},
    {"gelu_pytorch_tanh", geluTanh},
    {"quick_gelu", quickGelu},
    {"relu", relu},
    {"relu2", reluSquared},
    {"silu", silu},
    {"swish", silu},
    {"sigmoid", [](Emitter &e, Value x) { return e.unary<SigmoidOp>(x); }},
    {"tanh", [](Emitter &e, Value x) { return e.unary<TanhOp>(x); }},
    {"linear", [](Emitter &, Value x) { return x; }},
};

static const Activation *findActivation(llvm::StringRef name) {
  const auto *found = llvm::find_if(kActivations, [&](const Activation &a) { return a.name == name; });
  return found == std::end(kActivations) ? nullptr : found;
}

bool hf::isActivation(llvm::StringRef name) { return findActivation(name) != nullptr; }

std::string hf::readActivation(const Section &config, std::string_view key, const std::string &fallback) {
  std::string name = config.has(key) ? config.text(key) : fallback;
  if (findActivation(name))
    return name;
  std::string known;
  for (const Activation &activation : kActivations)
    known += (known.empty() ? "" : ", ") + activation.name.str();
  config.refuse(key, "expects one of " + known + ", but got " + config.describe(key));
  return fallback;
}

Value hf::activate(Graph &g, llvm::StringRef activation, Value x) {
  Emitter e = g.ops();
  return findActivation(activation)->emit(e, x);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Value hf::splitHeads(Graph &g, Value x, int64_t size) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  shape.back() /= size;
  shape.push_back(size);
  return g.ops().reshape(x, shape);
}

Value hf::joinHeads(Graph &g, Value x) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t size = shape.pop_back_val();
  shape.back() *= size;
  return g.ops().reshape(x, shape);
}

/// Which positions s (columns) a position t (rows) sees, [T, T]; null where it sees all.
static Value visible(Emitter &e, int64_t length, const AttentionOptions &options) {
  Type i64 = e.getBuilder().getI64Type();
  Value row = count(e, {length, length}, i64, 0), column = count(e, {length, length}, i64, 1);
  Value past = options.causal ? e.compare(Predicate::LE, column, row) : Value();
  if (options.window == 0)
    return past;
  Value width = e.splatLike(row, static_cast<double>(options.window));
  Value near = e.compare(Predicate::LT, e.sub(row, column), width);
  return e.binary<AndOp>(near, past ? past : e.compare(Predicate::LT, e.sub(column, row), width));
}

/// Whether two positions belong to one document, [B, T, T].
static Value together(Emitter &e, Value documents) {
  ArrayRef<int64_t> shape = tensorType(documents).getShape();
  SmallVector<int64_t> square = {shape[0], shape[1], shape[1]};
  return e.compare(Predicate::EQ, e.broadcast(documents, {0, 1}, square),
                   e.broadcast(documents, {0, 2}, square));
}

/// 0 where `seen` [..., T, T] holds, else minus infinity, which leaves nothing of a score.
static Value hide(Emitter &e, Value seen) {
  auto type = RankedTensorType::get(tensorType(seen).getShape(), e.getBuilder().getF32Type());
  return e.select(seen, e.splat(type, 0), e.splat(type, -INFINITY));
}

SmallVector<Value> hf::cutColumns(Graph &g, Value x, ArrayRef<int64_t> widths) {
  Emitter e = g.ops();
  SmallVector<Type> types;
  for (int64_t width : widths) {
    SmallVector<int64_t> shape(tensorType(x).getShape());
    shape.back() = width;
    types.push_back(tensorType(x).clone(shape));
  }
  auto split = e.getBuilder().create<SplitOp>(e.getLoc(), types, x,
                                              e.getBuilder().getI64IntegerAttr(tensorType(x).getRank() - 1));
  return llvm::to_vector_of<Value>(split.getResults());
}

/// [B, T, G, D] as [B, H, T, D], each head repeated for the H / G heads that share it.
static Value headsFirst(Emitter &e, Value x, int64_t heads) {
  auto shape = SmallVector<int64_t>(tensorType(x).getShape());
  Value moved = e.getBuilder().create<TransposeOp>(e.getLoc(), x, ArrayRef<int64_t>{0, 2, 1, 3});
  int64_t batch = shape[0], length = shape[1], groups = shape[2], size = shape[3];
  Value wide = e.broadcast(e.reshape(moved, {batch, groups, 1, length, size}), {0, 1, 2, 3, 4},
                           {batch, groups, heads / groups, length, size});
  return e.reshape(wide, {batch, heads, length, size});
}

/// c * tanh(x / c).
static Value bound(Emitter &e, Value x, double cap) {
  return cap == 0 ? x : e.scale(e.unary<TanhOp>(e.scale(x, 1 / cap)), cap);
}

/// Scores [B, H, T, T] with slopes[h] * (s - t) added.
static Value addSlopes(Emitter &e, Value scores, Value slopes) {
  RankedTensorType type = tensorType(scores);
  SmallVector<int64_t> square(type.getShape().drop_front(2));
  Type element = type.getElementType();
  Value distance = e.sub(count(e, square, element, 1), count(e, square, element, 0));
  return e.add(scores, e.mul(e.broadcast(slopes, {1}, type.getShape()),
                             e.broadcast(distance, {2, 3}, type.getShape())));
}

/// Attention whose weights exist as a tensor.
static Value spelledAttention(Graph &g, Value query, Value key, Value value,
                              const AttentionOptions &options) {
  Emitter e = g.ops();
  OpBuilder &b = e.getBuilder();
  int64_t heads = tensorType(query).getDimSize(2), length = tensorType(query).getDimSize(1);
  Value q = headsFirst(e, query, heads), k = headsFirst(e, key, heads), v = headsFirst(e, value, heads);
  Value products = b.create<MatmulOp>(e.getLoc(), q, k, false, /*transposeRhs=*/true).getResult();
  Value scores = bound(e, e.scale(products, options.scale), options.cap);
  if (options.slopes)
    scores = addSlopes(e, scores, options.slopes);
  ArrayRef<int64_t> shape = tensorType(scores).getShape();
  if (options.bias)
    scores = e.add(scores, e.repeatRows(options.bias, shape));
  if (Value seen = visible(e, length, options))
    scores = e.select(e.broadcast(seen, {2, 3}, shape), scores, e.splatLike(scores, -INFINITY));
  if (g.tokens.documents)
    scores = e.select(e.broadcast(together(e, g.tokens.documents), {0, 2, 3}, shape), scores,
                      e.splatLike(scores, -INFINITY));
  Value weights =
      b.create<SoftmaxOp>(e.getLoc(), scores.getType(), scores, b.getI64IntegerAttr(3), /*log=*/nullptr);
  weights = g.dropout(weights, options.dropout);
  Value mixed = b.create<MatmulOp>(e.getLoc(), weights, v).getResult();
  return b.create<TransposeOp>(e.getLoc(), mixed, ArrayRef<int64_t>{0, 2, 1, 3});
}

Value hf::attention(Graph &g, Value query, Value key, Value value, const AttentionOptions &options) {
  if (options.bias || width(query) > ::ds::kMaxHeadSize)
    return spelledAttention(g, query, key, value, options);
  Emitter e = g.ops();
  OpBuilder &b = e.getBuilder();
  ArrayRef<int64_t> shape = tensorType(query).getShape();
  int64_t length = shape[1];
  Value mask;
  if (g.tokens.documents)
    mask = e.reshape(hide(e, together(e, g.tokens.documents)), {shape[0], 1, length, length});
  auto lse = RankedTensorType::get({shape[0], shape[2], length}, b.getF32Type());
  const bool isWindow = options.window > 0 && options.window < length;
  const bool isDropped = options.dropout > 0;
  Value rng = isDropped ? g.generator() : Value();
  return b
      .create<AttentionOp>(e.getLoc(), query.getType(), lse, query, key, value, mask, options.slopes, rng,
                           /*first_head=*/Value(), options.causal ? b.getUnitAttr() : UnitAttr(),
                           isWindow ? b.getI64IntegerAttr(options.window) : IntegerAttr(),
                           options.cap > 0 ? b.getF64FloatAttr(options.cap) : FloatAttr(),
                           b.getF64FloatAttr(options.scale),
                           isDropped ? b.getF64FloatAttr(options.dropout) : FloatAttr(),
                           isDropped ? b.getI64IntegerAttr(g.nextDropout()) : IntegerAttr(),
                           /*heads=*/IntegerAttr())
      .getResult();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

Value hf::tokenLoss(Graph &g, Value logits, Value labels, double cap) {
  Scope scope(g, "loss");
  Emitter e = g.ops();
  OpBuilder &b = e.getBuilder();
  int64_t rows = tensorType(labels).getNumElements();
  Value flat = e.reshape(logits, {rows, width(logits)}), targets = e.reshape(labels, {rows});
  auto op =
      b.create<CrossEntropyOp>(e.getLoc(), flat, targets, /*denominator=*/Value(), /*ignoreIndex=*/-100);
  if (cap > 0)
    op.setCapAttr(b.getF64FloatAttr(cap));
  return op.getLoss();
}

Value hf::languageLoss(Graph &g, const LanguageHead &head, Value x, Value labels, int64_t vocabulary,
                       double deviation) {
  if (!head.tied)
    return tokenLoss(g, linear(g, head.name, x, vocabulary, head.bias, deviation), labels, head.cap);
  const std::string weight = head.table.str() + ".weight";
  g.tie(weight, head.name.str() + ".weight");
  Value table = g.existing(weight);
  Scope scope(g, head.name.str());
  Value bias = head.bias ? g.parameter("bias", {vocabulary}, Init::zeros()) : Value();
  return tokenLoss(g, project(g, x, table, bias), labels, head.cap);
}
