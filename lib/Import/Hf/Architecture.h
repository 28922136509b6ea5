//===- Architecture.h - A family of models, read from its configuration ---------===//
//
// One file per family: it reads its keys into a plain struct, and writes the forward over the shared layers.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ARCHITECTURE_H
#define DS_LIB_IMPORT_HF_ARCHITECTURE_H

#include "Layers.h"
#include "ds/Cost/Model.h"

namespace ds::hf {

// What sizes may be. Products of two of them fit 64 bits with room to spare; Graph bounds the rest.
inline constexpr Range<int64_t> kVocabularies{1, int64_t{1} << 24};
inline constexpr Range<int64_t> kWidths{1, int64_t{1} << 20};
inline constexpr Range<int64_t> kInnerWidths{1, int64_t{1} << 21};
inline constexpr Range<int64_t> kLayers{1, 4096};
inline constexpr Range<int64_t> kHeads{1, int64_t{1} << 16};
inline constexpr Range<int64_t> kPositions{1, int64_t{1} << 24};
inline constexpr Range<double> kProbabilities{0, 0.999};
inline constexpr Range<double> kEpsilons{1e-30, 1};
inline constexpr Range<double> kDeviations{0, 100};

/// The tokens of a model.
struct Vocabulary {
  int64_t size = 1;
  bool tied = false;              ///< the head is the table of tokens
  std::optional<int64_t> padding; ///< row of the padding token
};

/// Size of the pictures that a model reads, in pixels.
struct Image {
  int64_t channels = 3, height = 1, width = 1;
};

/// Size of the spectrograms that a model reads.
struct Spectrogram {
  int64_t mels = 1, frames = 1;
  int64_t tokens = 1; ///< that the encoder makes of it
};

/// What a sample is, where it is not just tokens with a label each.
struct SampleKind {
  /// A picture with one label; the model's `positions` are its patches and class token, `vocabulary` the
  /// labels.
  std::optional<Image> image;
  /// What the encoder reads in place of tokens; then the decoder reads at most `positions`.
  std::optional<Spectrogram> spectrogram;
  /// Tokens for the encoder, and others with labels for the decoder: as many as one likes, `positions`
  /// without
  /// --input.
  bool hasDecoder = false;
};

/// What becomes of attention's weights.
struct AttentionWeights {
  int64_t storedHeads = 0; ///< heads whose weights [T, T] exist as tensors; 0: none do
  bool areDropped = false; ///< some, by dropout
};

/// A model whose numbers are known.
class Architecture {
public:
  virtual ~Architecture() = default;

  /// Samples are at most so long.
  int64_t positions = 1;
  Vocabulary vocabulary;
  /// Elements of the widest tensor that the forward makes of one token, other than the logits.
  int64_t widest = 1;
  AttentionWeights weights;
  /// What checkpoints of the model without its head leave out of names.
  std::string basePrefix;
  SampleKind samples;
  /// Why no program can be made, where plans by rules are all there is; else empty.
  std::string whyNoProgram;

  /// The loss of `ids` [B, T] against `labels` [B, T]; of pictures [B, C, H, W] against labels [B], and of
  /// spectrograms [B, mels, frames] against what the decoder is to say.
  virtual Value forward(Graph &g, Value ids, Value labels) const = 0;

  /// What the rules of lib/Cost know of it, without `seq`. The error's message starts with the key.
  virtual Result<cost::ModelShape> sizes() const;

protected:
  /// Reads the sizes under the names that most families give them: all but heads.
  void readSizes(const Section &config);
  /// What is said alike of every family.
  cost::ModelShape commonShape() const;

  int64_t hidden = 1, inner = 1, layers = 1, heads = 1; ///< `inner`: width of the feed-forward
  int64_t size = 1;                                     ///< of a head
};

/// hidden_size / heads; refuses `headsKey` where heads do not divide it.
int64_t headSize(const Section &config, int64_t width, int64_t heads, std::string_view widthKey,
                 std::string_view headsKey);

/// Refuses `key` unless it is missing, null or false: what it asks for is not supported.
void refuseTrue(const Section &config, std::string_view key, const std::string &why);

/// The padding token of a vocabulary of `size`, whose row gets no gradient from being looked up; null means
/// none.
std::optional<int64_t> readPadding(const Section &config, int64_t size, std::optional<int64_t> fallback);

// Encoders/: encoders, and models that have one.
std::unique_ptr<Architecture> readBert(const Section &config);
std::unique_ptr<Architecture> readRoberta(const Section &config);
std::unique_ptr<Architecture> readElectra(const Section &config);
std::unique_ptr<Architecture> readDistilBert(const Section &config);
std::unique_ptr<Architecture> readModernBert(const Section &config);
std::unique_ptr<Architecture> readVit(const Section &config);
std::unique_ptr<Architecture> readDinov2(const Section &config);
std::unique_ptr<Architecture> readT5(const Section &config);
std::unique_ptr<Architecture> readMt5(const Section &config);
std::unique_ptr<Architecture> readWhisper(const Section &config);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ARCHITECTURE_H
