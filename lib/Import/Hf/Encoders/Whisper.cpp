//===- Whisper.cpp - An encoder of spectrograms and a decoder of text -------------===//
//
// Whisper (arXiv 2212.04356): two convolutions over time, of which the second halves it, make the encoder's
// tokens; norms before each block; keys without a bias. The encoder's positions are sines and cosines that
// checkpoints hold and nothing trains, the decoder's are learned. The head is the table of tokens.
//
//===---------------------------------------------------------------------------===//

#include "../Architecture.h"

#include "ds/Dialect/DsConv.h"

#include <cmath>

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

/// Frames that a filter of the convolutions sees, and frames of which the encoder makes one token.
static constexpr int64_t kFilter = 3, kFramesPerToken = 2;
/// Rows after which the slowest of the encoder's positions has turned by a radian.
static constexpr double kSlowest = 10000;
/// Every norm's, in the published code.
static constexpr double kEpsilon = 1e-5;
/// What the published code takes for pad_token_id where the key is missing.
static constexpr int64_t kPadding = 50256;

namespace {
class Whisper : public Architecture {
public:
  explicit Whisper(const Section &config);
  Value forward(Graph &g, Value features, Value labels) const override;

private:
  /// One half of the model.
  struct Half {
    int64_t layers = 1, heads = 1, inner = 1; ///< `inner`: width of the feed-forward
  };

  Half readHalf(const Section &config, const std::string &name, const std::string &otherNames) const;
  void readSpectrogram(const Section &config);
  void readPaddingToken(const Section &config);
  void readDropouts(const Section &config);
  Value convolve(Graph &g, llvm::StringRef name, Value x, int64_t stride) const;
  Value attend(Graph &g, llvm::StringRef name, Value x, Value memory, const Half &half, bool causal) const;
  Value feedForward(Graph &g, Value x, const Half &half) const;
  Value block(Graph &g, Value x, Value memory, const Half &half) const;
  Value encode(Graph &g, Value features) const;
  Value decode(Graph &g, Value memory) const;

  Half encoder, decoder;
  std::string activation;
  double dropout = 0, attentionDropout = 0, activationDropout = 0, deviation = 0.02;
};
} // namespace

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// The sizes of `name` ("encoder"), of which `otherNames` ("|num_hidden_layers") is how else its number of
/// layers is spelled.
Whisper::Half Whisper::readHalf(const Section &config, const std::string &name,
                                const std::string &otherNames) const {
  Half half;
  half.layers = config.integer(name + "_layers" + otherNames, kLayers);
  const std::string headsKey = name + "_attention_heads";
  half.heads = config.integer(headsKey, kHeads);
  headSize(config, hidden, half.heads, "d_model", headsKey);
  half.inner = config.integer(name + "_ffn_dim", kInnerWidths);
  const std::string drop = name + "_layerdrop";
  if (config.number(drop, kProbabilities, 0) > 0)
    config.refuse(drop, "expects 0, but got " + config.describe(drop) + ": layers are never left out");
  return half;
}

void Whisper::readSpectrogram(const Section &config) {
  Spectrogram kind;
  kind.mels = config.integer("num_mel_bins", kWidths);
  kind.tokens = config.integer("max_source_positions", kPositions);
  kind.frames = kFramesPerToken * kind.tokens;
  samples.spectrogram = kind;
  samples.hasDecoder = true;
  // Two sines and two cosines are the least that have a step from the fastest to the slowest.
  if (hidden % 2 != 0 || hidden < 4)
    config.refuse("d_model", "expects an even number of at least 4, half of them sines of the encoder's "
                             "positions, but got " +
                                 std::to_string(hidden));
  refuseTrue(config, "apply_spec_augment", "features are read as they are; mask those of the data");
  // How features would be masked, and what other heads and the search for words' times read.
  for (const char *key : {"mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob",
                          "mask_feature_length", "mask_feature_min_masks", "median_filter_width",
                          "classifier_proj_size", "use_weighted_layer_sum"})
    (void)config.has(key);
}

void Whisper::readPaddingToken(const Section &config) {
  const int64_t rows = vocabulary.size;
  if (!config.mentions("pad_token_id") && rows <= kPadding)
    (void)config.integer("pad_token_id", {-rows, rows - 1}); // the default is no row: the key must be there
  vocabulary.padding = readPadding(config, rows, kPadding);
}

void Whisper::readDropouts(const Section &config) {
  dropout = config.number("dropout", kProbabilities, 0);
  attentionDropout = config.number("attention_dropout", kProbabilities, 0);
  activationDropout = config.number("activation_dropout", kProbabilities, 0);
  weights.areDropped = attentionDropout > 0;
}

Whisper::Whisper(const Section &config) {
  vocabulary.size = config.integer("vocab_size", kVocabularies);
  hidden = config.integer("d_model|hidden_size", kWidths);
  encoder = readHalf(config, "encoder", "|num_hidden_layers");
  decoder = readHalf(config, "decoder", "");
  positions = config.integer("max_target_positions", kPositions);
  readSpectrogram(config);
  readPaddingToken(config);
  readDropouts(config);
  activation = readActivation(config, "activation_function", "gelu");
  deviation = config.number("init_std", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  refuseTrue(config, "scale_embedding", "the published code multiplies no embedding");
  basePrefix = "model.";
  widest = std::max({kFramesPerToken * hidden, encoder.inner, decoder.inner});
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// GELU of a convolution over the frames of x [B, channels, frames], which keeps every `stride`-th.
Value Whisper::convolve(Graph &g, llvm::StringRef name, Value x, int64_t stride) const {
  Value made;
  {
    Scope scope(g, name);
    llvm::SmallVector<int64_t> shape(tensorType(x).getShape());
    Value weight = g.parameter("weight", {hidden, shape[1], kFilter}, Init::normal(deviation));
    Value bias = g.parameter("bias", {hidden}, Init::zeros());
    shape[1] = hidden, shape[2] /= stride;
    Emitter e = g.ops();
    made = e.getBuilder().create<ConvOp>(
        e.getLoc(), tensorType(x).clone(shape), x, weight, bias, llvm::ArrayRef<int64_t>{stride},
        llvm::ArrayRef<int64_t>{kFilter / 2}, llvm::ArrayRef<int64_t>{1}, /*groups=*/1);
  }
  return activate(g, "gelu", made);
}

/// What attention of x to `memory` adds to x.
Value Whisper::attend(Graph &g, llvm::StringRef name, Value x, Value memory, const Half &half,
                      bool causal) const {
  Scope scope(g, name);
  const int64_t head = hidden / half.heads;
  const auto project = [&](llvm::StringRef part, Value of, bool bias) {
    return splitHeads(g, linear(g, part, of, hidden, bias, deviation), head);
  };
  Value q = project("q_proj", x, /*bias=*/true), k = project("k_proj", memory, /*bias=*/false);
  Value v = project("v_proj", memory, /*bias=*/true);
  AttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<double>(head));
  options.causal = causal;
  options.dropout = attentionDropout;
  Value mixed = joinHeads(g, attention(g, q, k, v, options));
  return g.dropout(linear(g, "out_proj", mixed, hidden, /*bias=*/true, deviation), dropout);
}

Value Whisper::feedForward(Graph &g, Value x, const Half &half) const {
  Value normed = layerNorm(g, "final_layer_norm", x, kEpsilon);
  Value expanded = activate(g, activation, linear(g, "fc1", normed, half.inner, /*bias=*/true, deviation));
  expanded = g.dropout(expanded, activationDropout);
  return g.dropout(linear(g, "fc2", expanded, hidden, /*bias=*/true, deviation), dropout);
}

/// One layer of a half; the decoder's reads `memory` besides, and sees no later token.
Value Whisper::block(Graph &g, Value x, Value memory, const Half &half) const {
  Value normed = layerNorm(g, "self_attn_layer_norm", x, kEpsilon);
  x = g.ops().add(x, attend(g, "self_attn", normed, normed, half, /*causal=*/static_cast<bool>(memory)));
  if (memory) {
    normed = layerNorm(g, "encoder_attn_layer_norm", x, kEpsilon);
    x = g.ops().add(x, attend(g, "encoder_attn", normed, memory, half, /*causal=*/false));
  }
  return g.ops().add(x, feedForward(g, x, half));
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Value Whisper::encode(Graph &g, Value features) const {
  Scope scope(g, "model.encoder");
  Value x = convolve(g, "conv2", convolve(g, "conv1", features, 1), kFramesPerToken);
  x = g.ops().getBuilder().create<TransposeOp>(g.ops().getLoc(), x, llvm::ArrayRef<int64_t>{0, 2, 1});
  Value rows;
  {
    Scope table(g, "embed_positions");
    rows = g.parameter("weight", {samples.spectrogram->tokens, hidden}, Init::sinusoid(kSlowest),
                       /*trainable=*/false);
  }
  Emitter e = g.ops();
  x = g.dropout(e.add(x, e.repeatRows(rows, tensorType(x).getShape())), dropout);
  for (int64_t index = 0; index < encoder.layers; ++index) {
    Scope layer(g, "layers." + std::to_string(index));
    x = block(g, x, /*memory=*/Value(), encoder);
  }
  return layerNorm(g, "layer_norm", x, kEpsilon);
}

Value Whisper::decode(Graph &g, Value memory) const {
  Scope scope(g, "model.decoder");
  Value x =
      embedding(g, "embed_tokens", g.tokens.decoder, vocabulary.size, hidden, deviation, vocabulary.padding);
  x = g.dropout(addPositions(g, "embed_positions", x, positions, deviation), dropout);
  for (int64_t index = 0; index < decoder.layers; ++index) {
    Scope layer(g, "layers." + std::to_string(index));
    x = block(g, x, memory, decoder);
  }
  return layerNorm(g, "layer_norm", x, kEpsilon);
}

Value Whisper::forward(Graph &g, Value features, Value labels) const {
  Value y = decode(g, encode(g, features));
  return languageLoss(g, {"proj_out", "model.decoder.embed_tokens", vocabulary.tied}, y, labels,
                      vocabulary.size, deviation);
}

std::unique_ptr<Architecture> hf::readWhisper(const Section &config) {
  return std::make_unique<Whisper>(config);
}
