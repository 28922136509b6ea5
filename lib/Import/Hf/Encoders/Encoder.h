//===- Encoder.h - Masked language models with a norm after each block ----------===//
//
// BERT and what came of it: attention in both directions, a norm after each of a layer's two blocks, a head
// that predicts masked tokens with the table of tokens. A family says what its checkpoints call each part and
// which keys it reads; everything else is here. Every sample is one segment (token type 0) and fills the
// whole length; positions whose label is -100 do not count in the loss.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ENCODERS_ENCODER_H
#define DS_LIB_IMPORT_HF_ENCODERS_ENCODER_H

#include "../Architecture.h"

namespace ds::hf {

/// What checkpoints call the head's parts, by full names.
struct EncoderHeadNames {
  llvm::StringLiteral dense, norm, bias;
  llvm::StringLiteral biasAlias; ///< what else checkpoints call the bias; empty: nothing
  llvm::StringLiteral decoder;   ///< layer of the head's matrix
};

/// What checkpoints call the parts of an encoder. Dots part the layers that a name lies in.
struct EncoderNames {
  llvm::StringLiteral base;      ///< "bert": what holds all but the head
  llvm::StringLiteral layers;    ///< below the base: "encoder.layer"
  llvm::StringLiteral attention; ///< below a layer, with the three projections in it: "attention.self"
  llvm::StringLiteral query, key, value;
  llvm::StringLiteral output, attentionNorm; ///< below a layer, as the next three
  llvm::StringLiteral expand, contract, outputNorm;
  EncoderHeadNames head;
};

/// BERT's names, with another base and head.
constexpr EncoderNames bertNames(llvm::StringLiteral base, const EncoderHeadNames &head) {
  return {.base = base,
          .layers = "encoder.layer",
          .attention = "attention.self",
          .query = "query",
          .key = "key",
          .value = "value",
          .output = "attention.output.dense",
          .attentionNorm = "attention.output.LayerNorm",
          .expand = "intermediate.dense",
          .contract = "output.dense",
          .outputNorm = "output.LayerNorm",
          .head = head};
}

/// Numbers of an encoder beside the common ones.
struct EncoderKeys {
  int64_t segments = 0;       ///< rows of the table of token types; 0: there is none
  int64_t firstPosition = 0;  ///< row of the table of positions that the first token reads
  int64_t embeddingWidth = 0; ///< of the tables and of the head; projected to `hidden` where it is another
  std::string activation, headActivation;
  double hiddenDropout = 0, attentionDropout = 0, epsilon = 1e-12, deviation = 0.02;
};

class Encoder : public Architecture {
public:
  Value forward(Graph &g, Value ids, Value labels) const override;

protected:
  explicit Encoder(const EncoderNames &names) : names(names) {}

  /// Reads the keys as BERT names them; `padding` is the default of `pad_token_id`.
  void readKeys(const Section &config, std::optional<int64_t> padding);
  /// Refuses what would make another model than a masked language model.
  void refuseOtherModels(const Section &config) const;
  /// What follows from the keys.
  void finish();

  EncoderNames names;
  EncoderKeys keys;
  /// Parts of published checkpoints, by full names, that the masked language model has no use for.
  std::vector<llvm::StringRef> unused;
  bool hasOldNorms = false; ///< old checkpoints call a norm's parameters gamma and beta

private:
  Value embed(Graph &g, Value ids) const;
  Value attend(Graph &g, Value x) const;
  Value block(Graph &g, Value x) const;
  Value norm(Graph &g, llvm::StringRef name, Value x) const;
  /// norm(x + dropout(dense(y))), where the norm's layer is.
  Value addBlock(Graph &g, llvm::StringRef dense, llvm::StringRef normName, Value y, Value x) const;
  Value predict(Graph &g, Value x) const;
};

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ENCODERS_ENCODER_H
