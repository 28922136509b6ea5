//===- Phi.cpp - Phi and Phi-3 ----------------------------------------------===//
//
// Phi: both halves of a layer read one norm, biases everywhere, the head included, half of each head rotated.
// Phi-3: as Llama, with one projection for query, key and value and one for gate and up.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readPhi(const Section &config) {
  DecoderSpec spec = readDecoder(config);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.vocabulary.tied = config.flag("tie_word_embeddings", false);
  spec.norm = readNorm(config, NormKind::Layer, "layer_norm_eps", 1e-5);
  spec.names.finalNorm = "final_layernorm", spec.names.output = "dense";
  spec.names.up = "fc1", spec.names.down = "fc2";
  spec.names.queryNorm = "q_layernorm", spec.names.keyNorm = "k_layernorm";
  spec.names.unused = {"self_attn.rotary_emb.inv_freq"};
  spec.parallel = true;
  spec.aroundMlp.before = "";
  spec.headNorm = config.flag("qk_layernorm", false) ? HeadNorm::Head : HeadNorm::None;
  spec.activation = readActivation(config, "hidden_act", "gelu_new");
  spec.gated = false;
  spec.biases = {.qkv = true, .output = true, .up = true, .down = true, .head = true};
  spec.dropouts.embedding = config.number("embd_pdrop", kProbabilities, 0);
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_pdrop", kProbabilities, 0);
  spec.dropouts.attention = config.number("attention_dropout", kProbabilities, 0);
  RotaryKeys rotary;
  rotary.allowsPartial = true;
  rotary.defaultShare = 0.5;
  readOneRotary(config, spec, rotary);
  return spec;
}

DecoderSpec hf::readPhi3(const Section &config) {
  RotaryKeys rotary;
  rotary.allowsPartial = true;
  rotary.defaultOriginal = 4096;
  DecoderSpec spec = readLlamaLike(config, {}, rotary, /*epsilon=*/1e-5);
  spec.vocabulary.padding = readPadding(config, spec.vocabulary.size, std::nullopt);
  spec.layout = QkvLayout::Joined;
  spec.names.joined = "qkv_proj", spec.names.joinedGate = "gate_up_proj";
  spec.dropouts.output = spec.dropouts.mlp = config.number("resid_pdrop", kProbabilities, 0);
  readWindows(config, spec, {});
  return spec;
}
