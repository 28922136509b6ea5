//===- Gpt2.cpp - GPT-2, GPT-NeoX and Pythia --------------------------------------===//
//
// GPT-2: learned positions, layer norm before each half of a layer, matrices as Conv1D stores them, a head
// that is the table of tokens. GPT-NeoX: both halves of a layer read its input (unless use_parallel_residual
// is off), a quarter of each head is rotated; query, key and value of one head lie side by side in one
// projection.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

#include <cmath>

using namespace ::ds::hf;
namespace hf = ::ds::hf;

/// Factors of scores.
static void readScales(const Section &config, DecoderSpec &spec) {
  if (!config.flag("scale_attn_weights", true))
    spec.factors.scores = 1;
  if (config.flag("scale_attn_by_inverse_layer_idx", false))
    for (size_t index = 0; index < spec.layers.size(); ++index)
      spec.layers[index].divisor = static_cast<double>(index + 1);
}

DecoderSpec hf::readGpt2(const Section &config) {
  DecoderSpec spec = readDecoder(config, kGpt2Sizes);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "wte", spec.names.positions = "wpe";
  spec.names.layers = "h", spec.names.finalNorm = "ln_f", spec.names.attention = "attn";
  spec.names.joined = "c_attn", spec.names.output = "c_proj";
  spec.names.up = "c_fc", spec.names.down = "c_proj";
  // The causal mask of old checkpoints, and the fill of its hidden scores.
  spec.names.unused = {"attn.bias", "attn.masked_bias"};
  spec.aroundAttention = {.before = "ln_1", .after = "", .ofSum = "", .isFirst = true};
  spec.aroundMlp.before = "ln_2";
  spec.layout = QkvLayout::Joined;
  spec.isTransposed = true;
  spec.biases = {.qkv = true, .output = true, .up = true, .down = true, .head = false};
  spec.activation = readActivation(config, "activation_function", "gelu_new");
  spec.gated = false;
  spec.outputDeviation = spec.deviation / std::sqrt(2.0 * static_cast<double>(spec.sizes.layers));
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_pdrop", kProbabilities, 0.1);
  spec.dropouts.embedding = config.number("embd_pdrop", kProbabilities, 0.1);
  spec.dropouts.attention = config.number("attn_pdrop", kProbabilities, 0.1);
  readScales(config, spec);
  refuseTrue(config, "add_cross_attention", "models with an encoder are not supported");
  return spec;
}

DecoderSpec hf::readGptNeox(const Section &config) {
  DecoderSpec spec = readDecoder(config, {.groups = "", .size = ""});
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_eps", 1e-5);
  spec.names.base = "gpt_neox", spec.names.tokens = "embed_in", spec.names.head = "embed_out";
  spec.names.finalNorm = "final_layer_norm", spec.names.attention = "attention";
  spec.names.joined = "query_key_value", spec.names.output = "dense";
  spec.names.up = "dense_h_to_4h", spec.names.down = "dense_4h_to_h";
  spec.names.unused = {"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"};
  spec.aroundAttention.isFirst = spec.aroundMlp.isFirst = true;
  spec.parallel = config.flag("use_parallel_residual", true);
  spec.layout = QkvLayout::Grouped;
  spec.biases = {.qkv = true, .output = true, .up = true, .down = true, .head = false};
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", true);
  spec.activation = readActivation(config, "hidden_act", "gelu");
  spec.gated = false;
  spec.dropouts.embedding = config.number("hidden_dropout", kProbabilities, 0);
  spec.dropouts.output = spec.dropouts.mlp = spec.dropouts.embedding;
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  RotaryKeys rotary;
  rotary.theta = "rotary_emb_base|rope_theta";
  rotary.share = "rotary_pct|partial_rotary_factor";
  rotary.defaultShare = 0.25;
  rotary.allowsPartial = true;
  readOneRotary(config, spec, rotary);
  return spec;
}
