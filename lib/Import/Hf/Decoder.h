//===- Decoder.h - A decoder that is described by data ---------------------------===//
//
// Decoder-only language models differ in a page of choices: which norm and where, how query, key and value
// are stored, what turns positions into numbers, what is multiplied or capped. A `DecoderSpec` says them, and
// one class writes the forward and counts the parameters. A family is a function from its keys to such a
// page; DecoderKeys.h has the readers that families share.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_DECODER_H
#define DS_LIB_IMPORT_HF_DECODER_H

#include "Architecture.h"
#include "Rotary.h"

namespace ds::hf {

/// What checkpoints call the parts. Paths lie below what contains them; empty: there is no such part, or for
/// a part that contains others, they lie outside of it.
struct DecoderNames {
  std::string base = "model"; ///< contains all but the head
  std::string tokens = "embed_tokens", positions, projectIn, embeddingNorm;
  std::string layers = "layers", finalNorm = "norm", projectOut, head = "lm_head";
  std::string attention = "self_attn", query = "q_proj", key = "k_proj", value = "v_proj";
  std::string joined; ///< in place of query, key and value
  std::string output = "o_proj", queryNorm = "q_norm", keyNorm = "k_norm";
  std::string mlp = "mlp", gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string joinedGate;          ///< in place of gate and up: gate's rows, then up's
  std::vector<std::string> unused; ///< below a layer: what checkpoints may hold and no step needs
};

/// How a half of a layer meets the residual stream: norms by name, of what it reads, of what it gives, of the
/// sum of that and the stream.
struct NormPlaces {
  std::string before, after, ofSum;
  bool isFirst = false; ///< the half is the first operand of the sum, as the published code has it
};

/// How the rows of one projection hold query, key and value.
enum class QkvLayout : uint8_t {
  Separate, ///< three projections
  Joined,   ///< all queries, all keys, all values
  Grouped,  ///< for each head of keys: the queries that share it, the key, the value
};

/// Norms of queries and keys.
enum class HeadNorm : uint8_t {
  None,
  Head,     ///< of each head, one weight [D] for all
  EachHead, ///< of each head, weights [H, D]
  OwnHead,  ///< of each head, a parameter [D] of its own, `.norms.0` onwards
  Whole,    ///< of all heads together
};

/// What differs from layer to layer.
struct LayerSpec {
  int64_t window = 0; ///< positions that a position sees, itself included; 0: all
  size_t rotary = 0;  ///< of `rotaries`; none where there are not so many
  double divisor = 1; ///< of scores, beside their factor
};

/// Feed-forwards of which a router chooses some for each token.
struct ExpertSpec {
  int64_t count = 0; ///< in each layer that has some; 0: no layer has
  int64_t perToken = 1;
  int64_t inner = 1;  ///< width of an expert
  int64_t shared = 0; ///< width of the feed-forward that all tokens pass beside them
  bool hasSharedGate = false, hasBiases = false;
  std::vector<bool> layers; ///< which have experts; the others have a feed-forward as without
};

/// Queries, keys and values that are made of narrow vectors; of a head's elements for scores some are
/// rotated.
struct LatentSpec {
  int64_t queryRank = 0; ///< 0: queries are made of the layer's input
  int64_t keyRank = 1, rotated = 1, plain = 1, value = 1;
};

struct DecoderSizes {
  int64_t positions = 1, hidden = 1, layers = 1, heads = 1;
  int64_t groups = 1;     ///< heads of keys and values
  int64_t size = 1;       ///< of a head
  int64_t inner = 1;      ///< width of the feed-forward
  int64_t tokenWidth = 0; ///< columns of the table of tokens; 0: `hidden`
};

struct DecoderBiases {
  bool qkv = false, output = false, up = false, down = false, head = false;
};

/// Probabilities.
struct DecoderDropouts {
  double embedding = 0, attention = 0, output = 0, mlp = 0;
  bool ofSum = false; ///< `mlp` is of the sum of both halves of a parallel layer
};

/// Factors, 1 where nothing is multiplied.
struct DecoderFactors {
  double embedding = 1, residual = 1, logits = 1;
  double scores = 1;
};

/// Bounds c of c * tanh(x / c); 0: none.
struct DecoderCaps {
  double scores = 0, logits = 0;
};

struct DecoderSpec {
  DecoderSizes sizes;
  Vocabulary vocabulary;
  DecoderNames names;
  Norm norm;
  NormPlaces aroundAttention{"input_layernorm", "", ""}, aroundMlp{"post_attention_layernorm", "", ""};
  bool parallel = false;  ///< both halves of a layer read its input; without a norm of its own the
                          ///< feed-forward reads what attention reads
  bool addsHalves = true; ///< of parallel halves: to each other first, and to the stream one after the other
                          ///< otherwise, as the published code has it
  HeadNorm headNorm = HeadNorm::None;
  std::optional<Norm> headNormKind; ///< where it is another than `norm`
  QkvLayout layout = QkvLayout::Separate;
  DecoderBiases biases;
  std::string activation = "silu";
  bool gated = true;
  std::vector<Rotary> rotaries;
  int64_t firstPosition = 0; ///< row of the first position in the table of positions
  std::vector<float> slopes; ///< of ALiBi, by head
  DecoderFactors factors;
  DecoderCaps caps;
  DecoderDropouts dropouts;
  double deviation = 0.02;    ///< of initial matrices
  double outputDeviation = 0; ///< of those that write into the residual stream; 0: as the others
  bool isTransposed = false;  ///< matrices of layers are [inputs, outputs], with a bias each: Conv1D
  std::vector<LayerSpec> layers;
  ExpertSpec experts;
  std::optional<LatentSpec> latent;
  bool hasSinks = false; ///< each head has a score that belongs to no position

  int64_t tokenWidth() const { return sizes.tokenWidth == 0 ? sizes.hidden : sizes.tokenWidth; }
};

class Decoder : public Architecture {
public:
  explicit Decoder(DecoderSpec read);
  Value forward(Graph &g, Value ids, Value labels) const override;
  ::ds::Result<::ds::cost::ModelShape> sizes() const override;

private:
  Value embed(Graph &g, Value ids) const;
  Value loss(Graph &g, Value x, Value labels) const;

  DecoderSpec spec;
};

/// What all layers share of one forward.
struct DecoderShared {
  std::vector<RotaryTables> tables; ///< of each of the rotaries
  Value slopes;
};

/// One layer of x [B, T, hidden], at the current path.
Value decoderLayer(Graph &g, const DecoderSpec &spec, const LayerSpec &layer, const DecoderShared &shared,
                   Value x);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_DECODER_H
