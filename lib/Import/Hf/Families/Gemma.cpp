//===- Gemma.cpp - Gemma, Gemma 2 and Gemma 3 -------------------------------===//
//
// Norms that multiply by 1 + weight, embeddings times the root of the width, a head that is the table of
// tokens. Gemma 2 adds norms of what each half of a layer gives, caps of scores and logits, and a window in
// every other layer; Gemma 3 norms of heads in place of the caps, five layers with a window before each
// without, and another base of the rotation for these.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

#include <cmath>

static constexpr Range<double> kScalars{1e-6, 1e9};
static constexpr Range<double> kCaps{1e-3, 1e9};

/// What the three have; `activation` is the key of the feed-forward's.
static DecoderSpec readGemmaLike(const Section &config) {
  SizeKeys sizes;
  sizes.defaultSize = 256;
  DecoderSpec spec = readDecoder(config, sizes);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, 0);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::RmsAddOne, "rms_norm_eps", 1e-6);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  spec.factors.embedding = std::sqrt(static_cast<double>(spec.sizes.hidden));
  refuseTrue(config, "use_bidirectional_attention", "only causal attention is supported");
  // Files of the first models say gelu and mean its approximation.
  const bool isOld = config.text("hidden_act") == "gelu" && !config.has("hidden_activation");
  const char *key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  spec.activation = isOld ? "gelu_pytorch_tanh" : readActivation(config, key, "gelu_pytorch_tanh");
  return spec;
}

/// What Gemma 2 and 3 add.
static void readLaterGemma(const Section &config, DecoderSpec &spec) {
  spec.aroundAttention.after = "post_attention_layernorm";
  spec.aroundMlp = {
      .before = "pre_feedforward_layernorm", .after = "post_feedforward_layernorm", .ofSum = ""};
  spec.factors.scores = 1 / std::sqrt(config.number("query_pre_attn_scalar", kScalars, 256));
}

/// A cap; `fallback` where the key is missing, none where it is null.
static double readCap(const Section &config, std::string_view key, double fallback) {
  return config.optional(key, kCaps).value_or(config.mentions(key) ? 0 : fallback);
}

DecoderSpec hf::readGemma(const Section &config) {
  DecoderSpec spec = readGemmaLike(config);
  readOneRotary(config, spec);
  return spec;
}

DecoderSpec hf::readGemma2(const Section &config) {
  DecoderSpec spec = readGemmaLike(config);
  readLaterGemma(config, spec);
  readOneRotary(config, spec);
  spec.caps.scores = readCap(config, "attn_logit_softcapping", 50);
  spec.caps.logits = readCap(config, "final_logit_softcapping", 30);
  WindowKeys windows;
  windows.fallback = 4096;
  windows.isSliding = [](int64_t index) { return index % 2 == 0; };
  readWindows(config, spec, windows);
  return spec;
}

/// The rotation of layers with a window, then that of those without.
static void readGemma3Rotaries(const Section &config, DecoderSpec &spec) {
  RotaryKeys whole;
  whole.positions = spec.sizes.positions;
  whole.defaultTheta = 1e6;
  whole.partOfParameters = "full_attention";
  RotaryKeys local;
  local.positions = spec.sizes.positions;
  local.theta = "rope_local_base_freq";
  local.partOfParameters = "sliding_attention";
  local.isScaledElsewhere = true;
  spec.rotaries = {readRotary(config, spec.sizes.size, local), readRotary(config, spec.sizes.size, whole)};
}

DecoderSpec hf::readGemma3(const Section &config) {
  DecoderSpec spec = readGemmaLike(config);
  readLaterGemma(config, spec);
  spec.headNorm = HeadNorm::Head;
  spec.caps.scores = readCap(config, "attn_logit_softcapping", 0);
  spec.caps.logits = readCap(config, "final_logit_softcapping", 0);
  WindowKeys windows;
  windows.fallback = 4096;
  windows.patternKey = "sliding_window_pattern|_sliding_window_pattern";
  const int64_t period = config.integer(windows.patternKey, {1, kLayers.max}, 6);
  windows.isSliding = [=](int64_t index) { return (index + 1) % period != 0; };
  readWindows(config, spec, windows);
  readGemma3Rotaries(config, spec);
  for (LayerSpec &layer : spec.layers)
    layer.rotary = layer.window > 0 ? 0 : 1;
  return spec;
}
