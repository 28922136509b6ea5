//===- GptBigcode.cpp - GPT-BigCode: SantaCoder and StarCoder ---------------===//
//
// GPT-2 with plain matrices and one head of keys and values for all queries, in one projection.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readGptBigcode(const Section &config) {
  const bool isShared = config.flag("multi_query", true);
  SizeKeys sizes = kGpt2Sizes;
  sizes.defaultGroups = isShared ? 1 : 0;
  DecoderSpec spec = readDecoder(config, sizes);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", true);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_epsilon", 1e-5);
  spec.names.base = "transformer", spec.names.tokens = "wte", spec.names.positions = "wpe";
  spec.names.layers = "h", spec.names.finalNorm = "ln_f", spec.names.attention = "attn";
  spec.names.joined = "c_attn", spec.names.output = "c_proj";
  spec.names.up = "c_fc", spec.names.down = "c_proj";
  spec.names.unused = {"attn.bias", "attn.masked_bias"};
  spec.aroundAttention.before = "ln_1", spec.aroundMlp.before = "ln_2";
  spec.layout = isShared ? QkvLayout::Joined : QkvLayout::Grouped;
  spec.activation = readActivation(config, "activation_function", "gelu_pytorch_tanh");
  spec.gated = false;
  spec.biases = {.qkv = true, .output = true, .up = true, .down = true, .head = false};
  spec.dropouts.embedding = config.number("embd_pdrop", kProbabilities, 0.1);
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_pdrop", kProbabilities, 0.1);
  spec.dropouts.attention = config.number("attn_pdrop", kProbabilities, 0.1);
  if (!config.flag("scale_attn_weights", true))
    spec.factors.scores = 1;
  refuseTrue(config, "add_cross_attention", "models with an encoder are not supported");
  return spec;
}
