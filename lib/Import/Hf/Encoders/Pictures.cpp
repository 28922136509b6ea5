//===- Pictures.cpp - Classifiers of pictures by patches ------------------------===//

#include "Pictures.h"
#include "Within.h"

#include "ds/Dialect/DsConv.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr Range<int64_t> kSides{1, 1 << 16}, kLabels{2, 1 << 24};

void PictureModel::readPicture(const Section &config) {
  const int64_t side = config.integer("image_size", kSides, 224);
  patch = config.integer("patch_size", kSides, 16);
  samples.image = Image{config.integer("num_channels", {1, 1024}, 3), side, side};
  if (side % patch != 0)
    config.refuse("patch_size", "expects a divisor of image_size, which is " + std::to_string(side) +
                                    ", but got " + std::to_string(patch));
  positions = (side / patch) * (side / patch) + 1;
}

void PictureModel::readLabels(const Section &config) {
  const int64_t named = config.entries("id2label");
  const int64_t fallback = named > 0 ? named : 2;
  vocabulary.size = config.integer("num_labels", kLabels, fallback);
  if (vocabulary.size < kLabels.min || (named > 0 && vocabulary.size != named))
    config.refuse(named > 0 ? "id2label" : "num_labels",
                  "expects " +
                      (named > 1 ? "num_labels, which is " + std::to_string(vocabulary.size) + ","
                                 : std::string("two or more labels")) +
                      ", but got " + std::to_string(named) + ": classes are what is built");
  const std::string problem = config.text("problem_type");
  if (!problem.empty() && problem != "single_label_classification")
    config.refuse("problem_type", "expects single_label_classification, but got '" + problem + "'");
}

void PictureModel::readKeys(const Section &config, double defaultEpsilon) {
  hidden = config.integer("hidden_size", kWidths);
  layers = config.integer("num_hidden_layers", kLayers);
  heads = config.integer("num_attention_heads", kHeads);
  size = headSize(config, hidden, heads, "hidden_size", "num_attention_heads");
  readPicture(config);
  readLabels(config);
  activation = readActivation(config, "hidden_act", "gelu");
  queryBias = config.flag("qkv_bias", true);
  hiddenDropout = config.number("hidden_dropout_prob", kProbabilities, 0);
  attentionDropout = config.number("attention_probs_dropout_prob", kProbabilities, 0);
  epsilon = config.number("layer_norm_eps", kEpsilons, defaultEpsilon);
  deviation = config.number("initializer_range", kDeviations, 0.02);
  weights.areDropped = attentionDropout > 0;
  basePrefix = names.base.str() + ".";
}

/// The patches as tokens, [B, N, C].
Value PictureModel::patches(Graph &g, Value pixels) const {
  Scope scope(g, "patch_embeddings.projection");
  Value weight =
      g.parameter("weight", {hidden, samples.image->channels, patch, patch}, Init::normal(deviation));
  Value bias = g.parameter("bias", {hidden}, Init::zeros());
  Emitter e = g.ops();
  mlir::OpBuilder &b = e.getBuilder();
  const int64_t batch = tensorType(pixels).getDimSize(0), side = samples.image->height / patch;
  const llvm::SmallVector<int64_t> stride(2, patch), none(2, 0), each(2, 1);
  Value grid = b.create<ConvOp>(e.getLoc(), tensorType(pixels).clone({batch, hidden, side, side}), pixels,
                                weight, bias, stride, none, each, /*groups=*/1);
  Value flat = e.reshape(grid, {batch, hidden, side * side});
  return b.create<TransposeOp>(e.getLoc(), flat, llvm::ArrayRef<int64_t>{0, 2, 1});
}

Value PictureModel::embed(Graph &g, Value pixels) const {
  Scope scope(g, "embeddings");
  g.ignoreWeight("mask_token"); // of pictures with hidden patches
  Value classes = g.parameter("cls_token", {1, 1, hidden}, Init::normal(deviation));
  Value x = patches(g, pixels);
  Value rows = g.parameter("position_embeddings", {1, positions, hidden}, Init::normal(deviation));
  Emitter e = g.ops();
  const int64_t batch = tensorType(x).getDimSize(0);
  auto type = tensorType(x).clone({batch, positions, hidden});
  Value first = e.broadcast(classes, {0, 1, 2}, {batch, 1, hidden});
  x = e.getBuilder().create<ConcatOp>(e.getLoc(), type, mlir::ValueRange{first, x},
                                      e.getBuilder().getI64IntegerAttr(1));
  return g.dropout(e.add(x, e.broadcast(rows, {0, 1, 2}, type.getShape())), hiddenDropout);
}

Value PictureModel::scaled(Graph &g, llvm::StringRef name, Value y) const {
  if (name.empty())
    return y;
  Within layer(g, name);
  Value factors = g.parameter(layer.leaf(), {hidden}, {mlir::ds::InitKind::Constant, scaleValue, 0});
  Emitter e = g.ops();
  return e.mul(y, e.repeatRows(factors, tensorType(y).getShape()));
}

Value PictureModel::attend(Graph &g, Value x) const {
  Value mixed;
  {
    Scope scope(g, names.attention);
    const auto project = [&](llvm::StringRef name) {
      return splitHeads(g, linear(g, name, x, hidden, queryBias, deviation), size);
    };
    Value q = project("query"), k = project("key"), v = project("value");
    AttentionOptions options;
    options.scale = 1 / std::sqrt(static_cast<double>(size));
    options.causal = false;
    options.dropout = attentionDropout;
    mixed = joinHeads(g, attention(g, q, k, v, options));
  }
  Within layer(g, names.output);
  return g.dropout(linear(g, layer.leaf(), mixed, hidden, /*bias=*/true, deviation), hiddenDropout);
}

Value PictureModel::feedForward(Graph &g, Value x) const {
  Value expanded;
  {
    Within layer(g, names.expand);
    expanded = linear(g, layer.leaf(), x, gated ? 2 * inner : inner, /*bias=*/true, deviation);
    if (gated) {
      llvm::SmallVector<Value> halves = cutColumns(g, expanded, {inner, inner});
      expanded = g.ops().mul(activate(g, "silu", halves[0]), halves[1]);
    } else {
      expanded = activate(g, activation, expanded);
    }
  }
  Within layer(g, names.contract);
  Value y = linear(g, layer.leaf(), expanded, hidden, /*bias=*/true, deviation);
  return dropsInner ? g.dropout(y, hiddenDropout) : y;
}

Value PictureModel::block(Graph &g, Value x) const {
  Value mixed = attend(g, layerNorm(g, names.norm, x, epsilon));
  x = g.ops().add(scaled(g, names.scale, mixed), x);
  Value fed = feedForward(g, layerNorm(g, names.innerNorm, x, epsilon));
  return g.ops().add(scaled(g, names.innerScale, fed), x);
}

/// Tokens `from` up to `to` of x [B, T, C].
static Value tokens(Graph &g, Value x, int64_t from, int64_t to) {
  Emitter e = g.ops();
  llvm::SmallVector<int64_t> shape(tensorType(x).getShape());
  shape[1] = to - from;
  return e.getBuilder().create<SliceOp>(e.getLoc(), tensorType(x).clone(shape), x,
                                        llvm::ArrayRef<int64_t>{0, from, 0},
                                        llvm::ArrayRef<int64_t>{1, 1, 1});
}

Value PictureModel::forward(Graph &g, Value pixels, Value labels) const {
  Value x;
  {
    Scope scope(g, names.base);
    x = embed(g, pixels);
    for (int64_t index = 0; index < layers; ++index) {
      Scope layer(g, "encoder.layer." + std::to_string(index));
      x = block(g, x);
    }
    x = layerNorm(g, "layernorm", x, epsilon);
  }
  Emitter e = g.ops();
  const int64_t batch = tensorType(x).getDimSize(0);
  Value read = e.reshape(tokens(g, x, 0, 1), {batch, hidden});
  if (readsPatches) {
    Value sum = e.sum(tokens(g, x, 1, positions), {1});
    Value mean = e.scale(sum, 1 / static_cast<double>(positions - 1));
    auto type = tensorType(read).clone({batch, 2 * hidden});
    read = e.getBuilder().create<ConcatOp>(e.getLoc(), type, mlir::ValueRange{read, mean},
                                           e.getBuilder().getI64IntegerAttr(1));
  }
  return tokenLoss(g, linear(g, "classifier", read, vocabulary.size, /*bias=*/true, deviation), labels);
}

//===----------------------------------------------------------------------===//
// The families
//===----------------------------------------------------------------------===//

static constexpr PictureNames kVit = {"vit",
                                      "layernorm_before",
                                      "attention.attention",
                                      "attention.output.dense",
                                      /*scale=*/"",
                                      "layernorm_after",
                                      "intermediate.dense",
                                      "output.dense",
                                      /*innerScale=*/""};

static constexpr PictureNames kDinov2 = {
    "dinov2",  "norm1",   "attention.attention", "attention.output.dense", "layer_scale1.lambda1", "norm2",
    "mlp.fc1", "mlp.fc2", "layer_scale2.lambda1"};

namespace {
class Vit : public PictureModel {
public:
  explicit Vit(const Section &config) : PictureModel(kVit) {
    readKeys(config, /*defaultEpsilon=*/1e-12);
    inner = config.integer("intermediate_size", kInnerWidths);
    widest = std::max(3 * hidden, inner);
  }
};

/// DINOv2 (arXiv 2304.07193) with its linear classifier.
class Dinov2 : public PictureModel {
public:
  explicit Dinov2(const Section &config) : PictureModel(kDinov2) {
    readKeys(config, /*defaultEpsilon=*/1e-6);
    inner = config.integer("mlp_ratio", {1, 64}, 4) * hidden;
    gated = config.flag("use_swiglu_ffn", false);
    if (gated) {
      names.expand = "mlp.weights_in", names.contract = "mlp.weights_out";
      inner = (inner * 2 / 3 + 7) / 8 * 8;
    }
    scaleValue = config.number("layerscale_value", kDeviations, 1);
    if (config.number("drop_path_rate", kProbabilities, 0) > 0)
      config.refuse("drop_path_rate", "expects 0, but got " + config.describe("drop_path_rate") +
                                          ": layers are never left out");
    readsPatches = true, dropsInner = false;
    widest = std::max(3 * hidden, (gated ? 2 : 1) * inner);
  }
};
} // namespace

std::unique_ptr<Architecture> hf::readVit(const Section &config) { return std::make_unique<Vit>(config); }
std::unique_ptr<Architecture> hf::readDinov2(const Section &config) {
  return std::make_unique<Dinov2>(config);
}
