//===- Pictures.h - Classifiers of pictures by patches --------------------------===//
//
// ViT and what came of it (arXiv 2010.11929): a picture is cut into square patches, each a token; a class
// token stands before them; norms before each block. A family says what its checkpoints call each part.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ENCODERS_PICTURES_H
#define DS_LIB_IMPORT_HF_ENCODERS_PICTURES_H

#include "../Architecture.h"

namespace ds::hf {

/// What checkpoints call the parts of a layer. Dots part the layers that a name lies in.
struct PictureNames {
  llvm::StringLiteral base; ///< "vit": what holds all but the classifier
  llvm::StringLiteral norm, attention, output;
  llvm::StringLiteral scale; ///< of what the attention adds, by channel; empty: there is none
  llvm::StringLiteral innerNorm, expand, contract;
  llvm::StringLiteral innerScale;
};

class PictureModel : public Architecture {
public:
  Value forward(Graph &g, Value pixels, Value labels) const override;

protected:
  explicit PictureModel(const PictureNames &names) : names(names) {}
  /// Reads all keys but the width of the feed-forward.
  void readKeys(const Section &config, double defaultEpsilon);

  PictureNames names;
  bool queryBias = true;
  bool gated = false;        ///< the feed-forward is SwiGLU, with both halves in one matrix
  bool readsPatches = false; ///< the classifier reads the patches' mean beside the class token
  bool dropsInner = true;    ///< dropout behind the feed-forward
  double scaleValue = 1;     ///< what the scales start with
  std::string activation;

private:
  void readPicture(const Section &config);
  void readLabels(const Section &config);
  Value embed(Graph &g, Value pixels) const;
  Value patches(Graph &g, Value pixels) const;
  Value attend(Graph &g, Value x) const;
  Value feedForward(Graph &g, Value x) const;
  Value block(Graph &g, Value x) const;
  /// y times the parameter of this name, or y without one.
  Value scaled(Graph &g, llvm::StringRef name, Value y) const;

  int64_t patch = 1;
  double hiddenDropout = 0, attentionDropout = 0, epsilon = 1e-12, deviation = 0.02;
};

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ENCODERS_PICTURES_H
