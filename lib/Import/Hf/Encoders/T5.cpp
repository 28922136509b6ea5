//===- T5.cpp - An encoder and a decoder with relative positions ----------------===//
//
// T5 (arXiv 1910.10683): norms without means before each block, attention without a scale, one trained table
// of relative positions for each half of the model, read by the first layer and shared by all. The table is
// what is learnt about positions, so that scores exist as tensors. T5 1.1 and FLAN-T5 differ in a gated
// feed-forward and a head of its own.
//
//===---------------------------------------------------------------------------===//

#include "../Architecture.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
/// Relative positions fall into buckets: half of them one position each, the rest ever wider ones.
struct Buckets {
  int64_t count = 32, farthest = 128;
};

class T5 : public Architecture {
public:
  enum class Kind { T5, Mt5 };
  T5(const Section &config, Kind kind);
  Value forward(Graph &g, Value ids, Value labels) const override;

private:
  /// One half of the model.
  struct Half {
    llvm::StringRef name; ///< "encoder"
    int64_t layers;
    bool causal;
  };

  void readFeedForward(const Section &config, const std::string &fallback);
  void readBuckets(const Section &config);
  Value matrix(Graph &g, llvm::StringRef name, Value x, int64_t columns, double fan) const;
  Value attend(Graph &g, Value x, Value memory, const AttentionOptions &options) const;
  Value feedForward(Graph &g, Value x) const;
  Value positionBias(Graph &g, const Half &half, int64_t length) const;
  Value addLayer(Graph &g, Value x, int64_t index, llvm::function_ref<Value(Value)> layer) const;
  Value stack(Graph &g, const Half &half, Value x, Value memory) const;

  int64_t decoderLayers = 1;
  Buckets buckets;
  std::string activation;
  bool gated = false;
  bool scalesOutput = true; ///< by 1 / sqrt(hidden), before the head
  double dropout = 0.1, epsilon = 1e-6, factor = 1;
};
} // namespace

void T5::readFeedForward(const Section &config, const std::string &fallback) {
  std::string kind = config.has("feed_forward_proj") ? config.text("feed_forward_proj") : fallback;
  llvm::StringRef name(kind);
  gated = name.consume_front("gated-");
  // What the published models were trained with; transformers reads it so.
  activation = gated && name == "gelu" ? "gelu_new" : name.str();
  if (!isActivation(activation))
    config.refuse("feed_forward_proj", "expects an activation, or gated- before one, but got '" + kind + "'");
}

void T5::readBuckets(const Section &config) {
  buckets.count = config.integer("relative_attention_num_buckets", {4, 256}, 32);
  buckets.farthest = config.integer("relative_attention_max_distance", {2, kPositions.max}, 128);
  if (buckets.count % 4 != 0)
    config.refuse("relative_attention_num_buckets",
                  "expects a multiple of 4, but got " + std::to_string(buckets.count));
  if (buckets.farthest <= buckets.count / 2)
    config.refuse("relative_attention_max_distance",
                  "expects more than half of relative_attention_num_buckets, which is " +
                      std::to_string(buckets.count) + ", but got " + std::to_string(buckets.farthest));
}

T5::T5(const Section &config, Kind kind) {
  vocabulary.size = config.integer("vocab_size", kVocabularies);
  hidden = config.integer("d_model", kWidths);
  size = config.integer("d_kv", kHeads);
  inner = config.integer("d_ff", kInnerWidths);
  layers = config.integer("num_layers", kLayers);
  decoderLayers = config.integer("num_decoder_layers", kLayers, layers);
  heads = config.integer("num_heads", kHeads);
  readBuckets(config);
  readFeedForward(config, kind == Kind::T5 ? "relu" : "gated-gelu");
  dropout = config.number("dropout_rate", kProbabilities, 0.1);
  epsilon = config.number("layer_norm_epsilon", kEpsilons, 1e-6);
  factor = config.number("initializer_factor", kDeviations, 1);
  vocabulary.tied = config.flag("tie_word_embeddings", kind == Kind::T5);
  scalesOutput = config.flag("scale_decoder_outputs", vocabulary.tied);
  positions = config.integer("n_positions", kPositions, 512);
  samples.hasDecoder = true;
  widest = std::max(inner, heads * size);
  weights.storedHeads = heads;
}

//===----------------------------------------------------------------------===//
// Relative positions
//===----------------------------------------------------------------------===//

/// The distances at which the next bucket begins, ascending: as many as `count` - 1. The first half of the
/// buckets has one distance each, the rest grows by the logarithm up to `farthest` (in single precision, as
/// published).
static llvm::SmallVector<int64_t> bucketStarts(int64_t count, int64_t farthest) {
  const int64_t exact = count / 2;
  const auto bucketOf = [&](int64_t distance) {
    if (distance < exact)
      return distance;
    const float share =
        std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
        static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(exact)));
    return std::min(count - 1, exact + static_cast<int64_t>(share * static_cast<float>(count - exact)));
  };
  llvm::SmallVector<int64_t> starts;
  for (int64_t distance = 1; static_cast<int64_t>(starts.size()) < count - 1; ++distance)
    while (static_cast<int64_t>(starts.size()) < bucketOf(distance))
      starts.push_back(distance);
  return starts;
}

/// The bucket of each pair of positions, [T, T] i64: those behind where `causal`, else both sides apart.
static Value bucketsOf(Emitter &e, const Buckets &buckets, bool causal, int64_t length) {
  mlir::Type i64 = e.getBuilder().getI64Type();
  auto type = mlir::RankedTensorType::get({length, length}, i64);
  const auto count = [&](int64_t dim) -> Value {
    return e.getBuilder().create<IotaOp>(e.getLoc(), type, dim, 0, 1);
  };
  Value back = e.sub(count(0), count(1)); // of the key, seen from the query
  Value distance = back, bucket = e.splat(type, 0);
  const int64_t side = causal ? buckets.count : buckets.count / 2;
  if (!causal) {
    Value isAhead = e.compare(Predicate::LT, back, e.splat(type, 0));
    distance = e.select(isAhead, e.neg(back), back);
    bucket = e.select(isAhead, e.splat(type, static_cast<double>(side)), bucket);
  }
  for (int64_t start : bucketStarts(side, buckets.farthest)) {
    Value reached = e.compare(Predicate::GE, distance, e.splat(type, static_cast<double>(start)));
    bucket = e.add(bucket, e.convert(reached, i64));
  }
  return bucket;
}

/// What the scores of one half's layers gain, [H, T, T]; its table is the first layer's.
Value T5::positionBias(Graph &g, const Half &half, int64_t length) const {
  Scope scope(g, half.name.str() + ".block.0.layer.0.SelfAttention.relative_attention_bias");
  const double deviation = factor / std::sqrt(static_cast<double>(hidden));
  Value table = g.parameter("weight", {buckets.count, heads}, Init::normal(deviation));
  Emitter e = g.ops();
  Value rows = lookUp(e, table, bucketsOf(e, buckets, half.causal, length));
  return e.getBuilder().create<TransposeOp>(e.getLoc(), rows, llvm::ArrayRef<int64_t>{2, 0, 1});
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// A matrix without a bias, which starts as a normal distribution with factor / sqrt(`fan`).
Value T5::matrix(Graph &g, llvm::StringRef name, Value x, int64_t columns, double fan) const {
  return linear(g, name, x, columns, /*bias=*/false, factor / std::sqrt(fan));
}

/// Attention of x to `memory` in the current layer; scores gain `bias`, if there is one.
Value T5::attend(Graph &g, Value x, Value memory, const AttentionOptions &options) const {
  const auto wide = static_cast<double>(hidden), head = static_cast<double>(size);
  const int64_t columns = heads * size;
  Value q = splitHeads(g, matrix(g, "q", x, columns, wide * head), size);
  Value k = splitHeads(g, matrix(g, "k", memory, columns, wide), size);
  Value v = splitHeads(g, matrix(g, "v", memory, columns, wide), size);
  return matrix(g, "o", joinHeads(g, attention(g, q, k, v, options)), hidden, static_cast<double>(columns));
}

Value T5::feedForward(Graph &g, Value x) const {
  Scope scope(g, "DenseReluDense");
  const auto wide = static_cast<double>(hidden);
  Value expanded = activate(g, activation, matrix(g, gated ? "wi_0" : "wi", x, inner, wide));
  if (gated)
    expanded = g.ops().mul(expanded, matrix(g, "wi_1", x, inner, wide));
  return matrix(g, "wo", g.dropout(expanded, dropout), hidden, static_cast<double>(inner));
}

/// x + dropout(layer(norm(x))), where the layer is number `index` of its block.
Value T5::addLayer(Graph &g, Value x, int64_t index, llvm::function_ref<Value(Value)> layer) const {
  Scope scope(g, "layer." + std::to_string(index));
  Value made = g.dropout(layer(rmsNorm(g, "layer_norm", x, epsilon)), dropout);
  return g.ops().add(x, made);
}

/// One half of the model over embedded tokens; the decoder reads `memory` besides.
Value T5::stack(Graph &g, const Half &half, Value x, Value memory) const {
  AttentionOptions own, other;
  own.causal = half.causal, other.causal = false;
  own.dropout = other.dropout = dropout;
  own.bias = positionBias(g, half, tensorType(x).getDimSize(1));
  x = g.dropout(x, dropout);
  for (int64_t index = 0; index < half.layers; ++index) {
    Scope block(g, half.name.str() + ".block." + std::to_string(index));
    int64_t number = 0;
    x = addLayer(g, x, number++, [&](Value normed) {
      Scope scope(g, "SelfAttention");
      return attend(g, normed, normed, own);
    });
    if (memory)
      x = addLayer(g, x, number++, [&](Value normed) {
        Scope scope(g, "EncDecAttention");
        return attend(g, normed, memory, other);
      });
    x = addLayer(g, x, number, [&](Value normed) { return feedForward(g, normed); });
  }
  x = rmsNorm(g, half.name.str() + ".final_layer_norm", x, epsilon);
  return g.dropout(x, dropout);
}

Value T5::forward(Graph &g, Value ids, Value labels) const {
  g.ignoreWeight("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"); // of old files
  Value x = embedding(g, "shared", ids, vocabulary.size, hidden, factor);
  for (const char *alias : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})
    g.tie("shared.weight", alias);
  Value memory = stack(g, {"encoder", layers, /*causal=*/false}, x, Value());
  Value begun = embedding(g, "shared", g.tokens.decoder, vocabulary.size, hidden, factor);
  Value y = stack(g, {"decoder", decoderLayers, /*causal=*/true}, begun, memory);
  if (scalesOutput)
    y = g.ops().scale(y, 1 / std::sqrt(static_cast<double>(hidden)));
  return languageLoss(g, {"lm_head", "shared", vocabulary.tied}, y, labels, vocabulary.size, factor);
}

std::unique_ptr<Architecture> hf::readT5(const Section &config) {
  return std::make_unique<T5>(config, T5::Kind::T5);
}
std::unique_ptr<Architecture> hf::readMt5(const Section &config) {
  return std::make_unique<T5>(config, T5::Kind::Mt5);
}
