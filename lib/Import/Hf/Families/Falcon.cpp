//===- Falcon.cpp - Falcon --------------------------------------------------===//
//
// Three kinds: one head of keys for all queries and one norm for both halves of a layer (7B); groups of heads
// and two norms (40B, new_decoder_architecture); heads with their own keys and ALiBi (RW). All have one
// projection.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

#include <cmath>

/// Norms, by the kind of layer.
static void readPlaces(const Section &config, DecoderSpec &spec, bool isNew) {
  spec.parallel = config.flag("parallel_attn", true) || isNew;
  const int64_t norms = config.integer("num_ln_in_parallel_attn", {1, 2}, isNew ? 2 : 1);
  if (isNew && norms == 2)
    spec.aroundAttention.before = "ln_attn", spec.aroundMlp.before = "ln_mlp";
  else if (spec.parallel)
    spec.aroundMlp.before = "";
}

DecoderSpec hf::readFalcon(const Section &config) {
  const bool isNew = config.flag("new_decoder_architecture", false);
  const bool isShared = !isNew && config.flag("multi_query", true);
  DecoderSpec spec = readDecoder(config, {.hidden = "hidden_size|n_embed",
                                          .layers = "num_hidden_layers|n_layer",
                                          .heads = "num_attention_heads|n_head",
                                          .inner = "ffn_hidden_size",
                                          .groups = isNew ? "num_kv_heads|n_head_kv" : "",
                                          .size = "",
                                          .defaultPositions = 2048,
                                          .defaultInner = 4,
                                          .defaultGroups = isShared ? 1 : 0});
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "word_embeddings", spec.names.layers = "h";
  spec.names.finalNorm = "ln_f", spec.names.attention = "self_attention";
  spec.names.joined = "query_key_value", spec.names.output = "dense";
  spec.names.up = "dense_h_to_4h", spec.names.down = "dense_4h_to_h";
  spec.names.unused = {"self_attention.rotary_emb.inv_freq", "self_attention.maybe_rotary.inv_freq"};
  readPlaces(config, spec, isNew);
  spec.layout = isShared ? QkvLayout::Joined : QkvLayout::Grouped;
  spec.activation = readActivation(config, "activation", "gelu");
  spec.gated = false;
  const bool bias = config.flag("bias", false);
  spec.biases = {.qkv = bias, .output = bias, .up = bias, .down = bias, .head = false};
  spec.dropouts.output = spec.dropouts.mlp = config.number("hidden_dropout", kProbabilities, 0);
  if (spec.parallel)
    spec.dropouts.output = 0, spec.dropouts.ofSum = true;
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  // Slopes are added to scores before these are scaled.
  if (config.flag("alibi", false))
    spec.slopes = alibiSlopes(spec.sizes.heads, spec.factors.scores);
  else
    readOneRotary(config, spec);
  return spec;
}
