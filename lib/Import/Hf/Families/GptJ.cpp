//===- GptJ.cpp - GPT-J -----------------------------------------------------===//
//
// Both halves of a layer read one layer norm; rotated elements lie side by side; biases of the feed-forward
// and of the head alone.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readGptJ(const Section &config) {
  DecoderSpec spec = readDecoder(config, kGpt2Sizes);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "wte", spec.names.layers = "h";
  spec.names.finalNorm = "ln_f", spec.names.attention = "attn", spec.names.output = "out_proj";
  spec.names.up = "fc_in", spec.names.down = "fc_out";
  spec.names.unused = {"attn.bias", "attn.masked_bias", "attn.embed_positions"};
  spec.parallel = true;
  spec.aroundAttention.before = "ln_1", spec.aroundMlp.before = "";
  spec.activation = readActivation(config, "activation_function", "gelu_new");
  spec.gated = false;
  spec.biases = {.qkv = false, .output = false, .up = true, .down = true, .head = true};
  spec.dropouts.embedding = config.number("embd_pdrop", kProbabilities, 0);
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_pdrop", kProbabilities, 0);
  spec.dropouts.attention = config.number("attn_pdrop", kProbabilities, 0);
  const bool isWhole = config.mentions("rotary_dim") && !config.has("rotary_dim");
  int64_t rotated = isWhole ? spec.sizes.size : config.integer("rotary_dim", {2, kHeads.max}, 64);
  if (rotated % 2 != 0 || rotated > spec.sizes.size) {
    config.refuse("rotary_dim", "expects an even number of at most the " + std::to_string(spec.sizes.size) +
                                    " elements of a head, but got " + std::to_string(rotated));
    rotated = 2;
  }
  spec.rotaries = {plainRotary(10000, rotated)};
  spec.rotaries[0].interleaved = true;
  return spec;
}
