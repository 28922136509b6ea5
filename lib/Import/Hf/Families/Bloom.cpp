//===- Bloom.cpp - BLOOM ----------------------------------------------------===//
//
// ALiBi in place of positions, a norm of the embedding, one projection with query, key and value of a head
// side by side.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readBloom(const Section &config) {
  // No position has a parameter: what the model was trained on is but the default and the limit here.
  DecoderSpec spec = readDecoder(config, {.positions = "seq_length",
                                          .hidden = "hidden_size|n_embed",
                                          .layers = "n_layer|num_hidden_layers",
                                          .heads = "n_head|num_attention_heads",
                                          .inner = "n_inner",
                                          .groups = "",
                                          .size = "",
                                          .defaultPositions = 2048,
                                          .defaultInner = 4});
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "word_embeddings";
  spec.names.embeddingNorm = "word_embeddings_layernorm", spec.names.layers = "h";
  spec.names.finalNorm = "ln_f", spec.names.attention = "self_attention";
  spec.names.joined = "query_key_value", spec.names.output = "dense";
  spec.names.up = "dense_h_to_4h", spec.names.down = "dense_4h_to_h";
  spec.layout = QkvLayout::Grouped;
  spec.activation = "gelu_pytorch_tanh";
  spec.gated = false;
  spec.biases = {.qkv = true, .output = true, .up = true, .down = true, .head = false};
  spec.slopes = alibiSlopes(spec.sizes.heads);
  spec.dropouts.output = spec.dropouts.mlp = config.number("hidden_dropout", kProbabilities, 0);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  refuseTrue(config, "apply_residual_connection_post_layernorm",
             "the residual stream is what a layer reads, not the norm of it");
  return spec;
}
