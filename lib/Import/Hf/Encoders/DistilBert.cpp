//===- DistilBert.cpp - DistilBERT as a masked language model -------------------===//
//
// BERT without token types, under other names (arXiv 1910.01108).
//
//===---------------------------------------------------------------------------===//

#include "Encoder.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

static constexpr EncoderNames kNames = {.base = "distilbert",
                                        .layers = "transformer.layer",
                                        .attention = "attention",
                                        .query = "q_lin",
                                        .key = "k_lin",
                                        .value = "v_lin",
                                        .output = "attention.out_lin",
                                        .attentionNorm = "sa_layer_norm",
                                        .expand = "ffn.lin1",
                                        .contract = "ffn.lin2",
                                        .outputNorm = "output_layer_norm",
                                        .head = {.dense = "vocab_transform",
                                                 .norm = "vocab_layer_norm",
                                                 .bias = "vocab_projector.bias",
                                                 .biasAlias = "",
                                                 .decoder = "vocab_projector"}};

namespace {
class DistilBert : public Encoder {
public:
  explicit DistilBert(const Section &config);
};
} // namespace

DistilBert::DistilBert(const Section &config) : Encoder(kNames) {
  vocabulary.size = config.integer("vocab_size", kVocabularies);
  positions = config.integer("max_position_embeddings", kPositions);
  hidden = config.integer("dim|hidden_size", kWidths);
  inner = config.integer("hidden_dim|intermediate_size", kInnerWidths);
  layers = config.integer("n_layers|num_hidden_layers", kLayers);
  vocabulary.padding = hf::readPadding(config, vocabulary.size, 0);
  heads = config.integer("n_heads|num_attention_heads", kHeads);
  size = headSize(config, hidden, heads, "dim|hidden_size", "n_heads|num_attention_heads");
  keys.activation = readActivation(config, "activation", "gelu");
  keys.hiddenDropout = config.number("dropout", kProbabilities, 0.1);
  keys.attentionDropout = config.number("attention_dropout", kProbabilities, 0.1);
  keys.deviation = config.number("initializer_range", kDeviations, 0.02);
  vocabulary.tied = config.flag("tie_word_embeddings", true);
  refuseTrue(config, "sinusoidal_pos_embds", "only a table of positions that is trained is supported");
  finish();
}

std::unique_ptr<Architecture> hf::readDistilBert(const Section &config) {
  return std::make_unique<DistilBert>(config);
}
